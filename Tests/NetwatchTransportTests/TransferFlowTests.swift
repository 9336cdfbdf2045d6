internal import Testing

@testable internal import NetwatchTransport

@Suite struct TransferFlowTests {
    private var flow = TransferFlow(paused: [])

    init() {}

    @Test mutating func `a restart ends the wait for a source, and takes over the pause of the caller`() {
        flow.waitForSource()
        #expect(flow.directions == .sending)
        flow.restart(paused: .receiving)
        #expect(flow.directions == .receiving)
        let wasWaiting = flow.sourceIsReady()
        #expect(!wasWaiting)
        let wasPaused = flow.resume()
        #expect(wasPaused && flow.directions.isEmpty)
    }
}
