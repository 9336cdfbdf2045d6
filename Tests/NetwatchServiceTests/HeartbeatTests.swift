internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchService

@Suite(.timeLimit(.minutes(5))) struct HeartbeatTests {
    @Test func `a part that does not respond stops the reports`() async throws {
        let calls = Recorder<String>()
        let (responses, response) = AsyncStream.makeStream(of: Void.self)
        let heartbeat = Heartbeat(
            interval: .zero,
            parts: [{ calls.record("prompt") }, { _ = await responses.first { _ in true } }],
            report: { calls.record("report") }
        )
        let running = Task { await heartbeat.run() }
        response.yield()
        try await calls.wait { $0.count(where: { $0 == "prompt" }) == 2 }
        #expect(calls.values == ["prompt", "report", "prompt"])
        running.cancel()
        await running.value
    }
}
