internal import NetwatchTestSupport
internal import Testing

/// Processes that tests start must not outlive the tests.
@Suite(.timeLimit(.minutes(5))) struct ServerProcessTests {
    @Test func `a server process ends when its last reference is released`() async throws {
        var server: ServerProcess? = try ServerProcess(in: try ScratchDirectory(), on: .none) { _ in
            ["/bin/sleep", "1000"]
        }
        // The keeper is the process that stops the server. It ends after the server.
        let keeper = try #require(server?.process)
        server = nil
        #expect(try await keeper.end() == .exited(0))
    }
}
