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

    @Test func `the wait for a turn ends if the engine may not have started`() async {
        await TransferEngine.shared.awaitTurn()
    }
}
