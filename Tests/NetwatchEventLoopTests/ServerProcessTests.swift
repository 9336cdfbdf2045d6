internal import NetwatchTestSupport
internal import Testing

/// Processes started by tests must not outlive them.
@Suite(.timeLimit(.minutes(1))) struct ServerProcessTests {
    @Test func `a server process ends when its last reference is released`() async throws {
        var server: ServerProcess? = try ServerProcess(in: try ScratchDirectory(), on: .none) { _ in
            ["/bin/sleep", "1000"]
        }
        // The keeper ends after the server.
        let keeper = try #require(server?.process)
        server = nil
        #expect(try await keeper.end() == .exited(0))
    }
}
