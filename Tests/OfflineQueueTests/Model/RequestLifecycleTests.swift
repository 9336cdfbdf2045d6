internal import OfflineQueue
internal import Testing

@Suite struct RequestLifecycleTests {
    private let lease = Lease(token: "a", ownerEpoch: 1)

    private func inflight(mayBeSentTwice: Bool = true) throws -> RequestLifecycle {
        var state = RequestLifecycle(
            phase: .pending(due: start),
            rules: RequestRules(mayBeSentTwice: mayBeSentTwice)
        )
        try state.apply(.claimed(lease))
        return state
    }

    @Test func `a claim makes a pending request inflight and counts an attempt`() throws {
        let state = try inflight()
        #expect(state.phase == .inflight(lease, pendingEdit: nil))
        #expect(state.attempts == 1)
    }

    @Test func `a request in flight cannot be claimed again`() throws {
        var state = try inflight()
        #expect(throws: RequestLifecycle.Refusal.notPending) {
            try state.apply(.claimed(Lease(token: "b", ownerEpoch: 1)))
        }
    }

    @Test(arguments: [
        (Verdict.delivered(status: 204), RequestLifecycle.Phase.finished(.delivered(status: 204))),
        (.dead(reason: "HTTP 404"), .finished(.dead(reason: "HTTP 404"))),
        (.held(.trust), .held(.trust)),
        (.retry(countsAsAttempt: true), .pending(due: start + .seconds(9))),
    ])
    func `a verdict changes the state of a request in flight`(
        verdict: Verdict,
        phase: RequestLifecycle.Phase
    ) throws {
        var state = try inflight()
        try state.apply(.concluded(token: "a", verdict, due: start + .seconds(9)))
        #expect(state.phase == phase)
        #expect(state.attempts == 1)
    }

    @Test func `a retry that does not count does not increase the attempts`() throws {
        var state = try inflight()
        try state.apply(.concluded(token: "a", .retry(countsAsAttempt: false), due: start))
        #expect(state.attempts == 0)
        #expect(state.deferrals == 1)
    }

    @Test func `a stale lease changes no request`() throws {
        var state = try inflight()
        let before = state
        #expect(throws: RequestLifecycle.Refusal.staleLease) {
            try state.apply(.concluded(token: "old", .delivered(status: 200), due: start))
        }
        #expect(state == before)
    }

    @Test(arguments: [
        (true, RequestLifecycle.Phase.pending(due: start)), (false, .held(.ambiguous)),
    ])
    func `a dead owner's request is pending again, unless it must not be sent twice`(
        mayBeSentTwice: Bool,
        phase: RequestLifecycle.Phase
    ) throws {
        var state = try inflight(mayBeSentTwice: mayBeSentTwice)
        try state.apply(.abandoned(token: "a", now: start))
        #expect(state.phase == phase)
        #expect(state.attempts == 1)
    }

    @Test func `only requests held for a released reason are pending again`() throws {
        var state = try inflight()
        try state.apply(.concluded(token: "a", .held(.configuration), due: start))
        #expect(throws: RequestLifecycle.Refusal.notHeld) {
            try state.apply(.released([.trust, .auth], now: start, isBlocked: false))
        }
        try state.apply(.released([.configuration], now: start, isBlocked: false))
        #expect(state.phase == .pending(due: start))
    }
}
