internal import Testing

@testable internal import OfflineQueue

@Suite struct PortalCheckTests {
    @Test func `a suspicious response is not followed by the presumption that the probe fails`() {
        var check = PortalCheck()
        var random = SplitMix64(seed: 1)
        check.reset(isSuspected: true)
        check.begin(1)
        check.presumeFailure()
        #expect(!check.permitsSending)
        check.end(.failed, now: .zero, Backoff(base: .seconds(2), cap: .seconds(60)), using: &random)
        #expect(check.permitsSending)
        check.reset()
        check.begin(2)
        check.presumeFailure()
        #expect(check.permitsSending)
    }
}
