internal import NetwatchTestSupport
internal import Testing

/// Commands that are started with a closed standard input.
@Suite(.timeLimit(.minutes(2))) struct ClosedInputTests {
    @Test func `a closed standard input is an error and not an empty body`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        let server = try ScriptedServer()
        for arguments in [
            "send \(server.url) -T -", "send \(server.url) -d @-", "send \(server.url) --json @-",
            "send \(server.url) --queue never -T -", "queue drop -", "queue import -", "host --hosts-from -",
        ] {
            let socket = arguments.hasPrefix("host") ? "" : "--socket \(service.socket)"
            let outcome = try await Subprocess(
                "/bin/sh",
                ["-c", "\(Command.path) \(arguments) \(socket) <&-"]
            )
            .outcome()
            #expect(outcome.ending == .exited(64), "\(arguments): \(outcome.errors)")
            #expect(
                outcome.errors.first
                    == "error: could not read standard input: it is closed, or not open for reading",
                "\(arguments)"
            )
        }
        #expect(try await service.queue().isEmpty && server.requests.isEmpty)
    }

    @Test func `an empty standard input is an empty body`() async throws {
        let server = try ScriptedServer()
        let service = try await RunningService(in: try ScratchDirectory())
        let sent = try await service.run(["send", server.url, "-T", "-"], input: "/dev/null")
        #expect(sent.ending == .exited(0) && server.requests.map(\.body) == [[]], "\(sent.errors)")
    }
}
