internal import NetwatchTestSupport
internal import Testing

/// `netwatch wait --check-url` with a server on this machine.
@Suite(.timeLimit(.minutes(5))) struct WaitCheckURLTests {
    @Test(arguments: ["127.0.0.1", "localhost"])
    func `a server on this machine can be waited for`(host: String) async throws {
        let server = try ScriptedServer { _ in .respond(status: 204) }
        let url = "http://\(host):\(server.port)/204"
        let waited = try await Command.run(
            "wait",
            "-v",
            "--for",
            "verified",
            "--check-url",
            url,
            "--timeout",
            "60s"
        )
        #expect(waited.ending == .exited(0), "\(waited.errors)")
        #expect(waited.errors.first?.hasPrefix("`\(host)` is ") == true, "\(waited.errors)")
        #expect(waited.errors.allSatisfy { !$0.contains("  ") }, "\(waited.errors)")
    }
}
