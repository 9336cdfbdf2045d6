internal import Testing

@testable internal import NetwatchTransport

@Suite struct SendStateTests {
    private var state = SendState()

    init() {}

    @Test mutating func `a time that the server received nothing does not count`() {
        state.willSend(from: 100)
        state.markUnsent(wasSent: true, bytes: 20)
        #expect(state.count == 0 && state.offset == nil && state.earlierBytes == 20 && state.lacksConnection)
        state.markUnsent(wasSent: false, bytes: 0)
        #expect(state.count == 0)
        state.addAgain()
        state.willSend(from: 0)
        #expect(state.count == 1 && !state.lacksConnection)
    }

    @Test mutating func `a refusal of all streams proves only the first sending unprocessed`() {
        state.willSend(from: 0)
        state.refuseAllStreams()
        #expect(state.isUnprocessed)
        state.willSend(from: 0)
        #expect(!state.isUnprocessed)
    }
}
