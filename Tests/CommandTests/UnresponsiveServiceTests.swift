internal import Glibc
internal import NetwatchTestSupport
internal import Testing

/// Commands whose service accepts connections but does not respond.
@Suite(.serialized, .timeLimit(.minutes(5))) struct UnresponsiveServiceTests {
    private let directory = try! ScratchDirectory()
    private var socket: String { directory.file("socket") }

    @Test func `send and an edit fail if the service has stopped responding`() async throws {
        let service = try await RunningService(in: directory)
        service.process.signal(SIGSTOP)
        defer { service.process.signal(SIGCONT) }
        let sending = try Command.start([
            "send", "http://127.0.0.1:1/", "--id", "order-7", "--socket", socket,
        ])
        let dropping = try Command.start(["queue", "cancel", "--all", "--yes", "--socket", socket])
        let sent = try await sending.outcome()
        #expect(sent.ending == .exited(2) && sent.output.isEmpty)
        #expect(
            sent.errors.first?.contains("did not respond: it has sent nothing for") == true,
            "\(sent.errors)"
        )
        #expect(
            sent.errors.last
                == "hint: the request may have been accepted; repeating the command with `--id order-7` is safe"
        )
        let dropped = try await dropping.outcome()
        #expect(dropped.ending == .exited(2), "\(dropped.errors)")
    }

    @Test func `status waits no longer than its timeout, even if bytes arrive`() async throws {
        let service = try ScriptedServer(unixPath: socket) { _ in .drippingBody }
        let status = try await Command.run("status", "--timeout", "500ms", "--socket", socket)
        #expect(
            status.output.last?.hasPrefix("service     not responding in time, pid") == true,
            "\(status.output)"
        )
        withExtendedLifetime(service) {}
    }

    @Test func `send waits for a slow attempt as long as the service responds to checks`() async throws {
        let service = try ScriptedServer(unixPath: socket) { request in
            guard request.method == "POST" else { return .respond("{}") }
            return .stall(then: .respond(#"{"id":"a","state":"delivered","status":200,"v":1}"#))
        }
        let sending = try Command.start(["send", "http://127.0.0.1:1/", "--socket", socket])
        // The request and two checks.
        await service.requests(atLeast: 3)
        service.release()
        let sent = try await sending.outcome()
        #expect(sent.ending == .exited(0) && sent.output == ["a"], "\(sent.errors)")
    }
}
