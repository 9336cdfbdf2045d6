internal import NetwatchTestSupport
internal import Testing

/// Commands whose standard input or output is closed or cannot be used.
@Suite(.timeLimit(.minutes(5))) struct StandardStreamTests {
    @Test func `a closed standard input is an error and not an empty body`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        let server = try ScriptedServer()
        for arguments in [
            "send \(server.url) -T -", "send \(server.url) -d @-", "send \(server.url) --json @-",
            "send \(server.url) --queue never -T -", "queue cancel -", "queue import -",
            "host --hosts-from -",
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

    @Test func `an id that cannot be printed on standard output is in the error`() async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        let command =
            "\(Command.path) send http://127.0.0.1:1/ --id a --queue always --socket \(service.socket)"
        let outcome = try await Subprocess("/bin/sh", ["-c", "\(command) >/dev/full"]).outcome()
        #expect(outcome.ending == .exited(2))
        #expect(outcome.errors.first == "error: could not write to standard output: No space left on device")
        #expect(outcome.errors.last?.contains("the request was accepted: `netwatch queue show a`") == true)
    }

    @Test(arguments: [".", "..", "a/b?c%2e"])
    func `an id is not interpreted as a path`(id: String) async throws {
        let service = try await RunningService(in: try ScratchDirectory())
        try await service.keep("http://127.0.0.1:1/", "--id", id)
        let shown = try await service.run("queue", "show", id)
        #expect(shown.ending == .exited(0) && shown.output.first?.hasSuffix(id) == true, "\(shown)")
    }
}
