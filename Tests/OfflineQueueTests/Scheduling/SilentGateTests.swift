internal import OfflineQueue
internal import Testing

/// Lanes whose gate has not reported a state yet. They wait for it, to avoid a useless attempt to an unreachable host.
@Suite struct SilentGateTests {
    private let lane = Scheduler.LaneInfo(id: 1, host: "a", mode: .parallel)
    private let gateTimeout = Scheduler.Settings().gateTimeout

    /// Returns a scheduler with one new request, and whether the request is claimed at once.
    private func enqueued() -> (Scheduler, isClaimed: Bool) {
        var scheduler = Scheduler(seed: 1)
        let actions = scheduler.handle(.rows(lane, due: .zero), now: .zero)
        return (scheduler, isClaim(actions))
    }

    private func isClaim(_ actions: [Scheduler.Action]) -> Bool {
        actions.contains { if case .claim = $0 { true } else { false } }
    }

    @Test func `no request is tried or refused before the gate's first state`() {
        let (scheduler, isClaimed) = enqueued()
        #expect(!isClaimed)
        #expect(scheduler.waitReason(ofLane: 1, now: .zero) == nil)
        #expect(scheduler.nextWake(now: .zero) == gateTimeout)
    }

    @Test(arguments: [GateState.reachable(generation: 1), .unknown])
    func `a first gate state other than not reachable starts the lane`(word: GateState) {
        var (scheduler, _) = enqueued()
        #expect(isClaim(scheduler.handle(.gate(.https("a"), word), now: .milliseconds(1))) == true)
    }

    @Test func `an unreachable host fails send without an attempt`() {
        var (scheduler, _) = enqueued()
        #expect(isClaim(scheduler.handle(.gate(.https("a"), .notReachable), now: .milliseconds(1))) == false)
        #expect(scheduler.waitReason(ofLane: 1, now: .milliseconds(1)) == .noPath)
    }

    @Test func `a lane starts without a gate state after the gate timeout`() {
        var (scheduler, _) = enqueued()
        #expect(isClaim(scheduler.handle(.wake, now: gateTimeout - .milliseconds(1))) == false)
        #expect(isClaim(scheduler.handle(.wake, now: gateTimeout)) == true)
    }

    @Test func `the gate's first state drops no connections and aborts no attempt`() {
        var (scheduler, _) = enqueued()
        let actions = scheduler.handle(.gate(.https("a"), .reachable(generation: 1)), now: .zero)
        #expect(!actions.contains(.dropConnections))
        #expect(!actions.contains(.abort(.https("a"))))
    }

    @Test func `attempts are aborted when the host is found again or the path changes`() {
        var (scheduler, _) = enqueued()
        _ = scheduler.handle(.gate(.https("a"), .reachable(generation: 1)), now: .zero)
        let lost = scheduler.handle(.gate(.https("a"), .notReachable), now: .zero)
        #expect(!lost.contains(.abort(.https("a"))), "the response may still arrive")
        let found = scheduler.handle(.gate(.https("a"), .reachable(generation: 2)), now: .zero)
        #expect(found.contains(.abort(.https("a"))))
        let moved = scheduler.handle(.gate(.https("a"), .reachable(generation: 3)), now: .zero)
        #expect(moved.contains(.abort(.https("a"))))
    }

    @Test func `a flush does not shorten the wait after an overrun`() {
        var (scheduler, _) = enqueued()
        #expect(isClaim(scheduler.handle(.flush(.all), now: .milliseconds(1))) == true)
    }
}
