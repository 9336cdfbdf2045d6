internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchTransport

@Suite(.timeLimit(.minutes(5))) struct EngineTurnTests {
    @Test func `the wait for a turn ends after everything that was submitted before`() async throws {
        let engine = try TransferEngine()
        let order = Recorder<String>()
        let gate = Gate()
        engine.perform { _ in
            gate.wait()
            order.record("submitted before")
        }
        let waiting = Task {
            await engine.awaitTurn()
            order.record("turn")
        }
        gate.open()
        await waiting.value
        #expect(order.values == ["submitted before", "turn"])
    }

    /// For everything that arrives from outside, a stopped process (SIGSTOP, a frozen control group, a stalled virtual
    /// machine) is like a blocked thread.
    @Test func `a response that arrives while the engine does not run is read before the timeout is judged`()
        async throws
    {
        let engine = try TransferEngine()
        let server = try ScriptedServer { _ in .stall(then: .respond("in time")) }
        var request = TransferRequest(url: server.url)
        let timeout = Duration.seconds(2)
        request.totalTimeout = timeout
        let recorder = TransferRecorder()
        let start = BootInstant.now
        engine.start(request) { recorder.deliver($0) }
        _ = await server.requests(atLeast: 1)
        let gate = Gate()
        engine.perform { _ in gate.wait() }
        server.release()
        try await Task.sleep(for: timeout + .milliseconds(200) - start.duration(to: .now))
        gate.open()
        #expect(await recorder.end().text == "in time")
    }

    @Test func `the wait for a turn ends if the engine may not have started`() async {
        await TransferEngine.shared.awaitTurn()
    }
}
