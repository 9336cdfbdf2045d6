internal import OfflineQueue
internal import Testing

@Suite struct RequestStateTests {
    private let lease = Lease(token: "a", ownerEpoch: 1)

    private func inflight(mayBeSentTwice: Bool = true) throws -> RequestState {
        var state = RequestState(
            phase: .pending(due: start),
            rules: RequestRules(mayBeSentTwice: mayBeSentTwice)
        )
        try state.apply(.claimed(lease))
        return state
    }

    @Test func `a claim makes a pending request inflight and counts an attempt`() throws {
        let state = try inflight()
        #expect(state.phase == .inflight(lease, wish: nil))
        #expect(state.attempts == 1)
    }

    @Test func `what is inflight cannot be claimed again`() throws {
        var state = try inflight()
        #expect(throws: RequestState.Refusal.notPending) {
            try state.apply(.claimed(Lease(token: "b", ownerEpoch: 1)))
        }
    }

    @Test(arguments: [
        (Verdict.delivered(status: 204), RequestState.Phase.finished(.delivered(status: 204))),
        (.dead(reason: "HTTP 404"), .finished(.dead(reason: "HTTP 404"))),
        (.held(.trust), .held(.trust)),
        (.retry(countsAsAttempt: true), .pending(due: start + .seconds(9))),
    ])
    func `a verdict moves an inflight request`(verdict: Verdict, phase: RequestState.Phase) throws {
        var state = try inflight()
        try state.apply(.concluded(token: "a", verdict, due: start + .seconds(9)))
        #expect(state.phase == phase)
        #expect(state.attempts == 1)
    }

    @Test func `a retry that does not count gives its attempt back`() throws {
        var state = try inflight()
        try state.apply(.concluded(token: "a", .retry(countsAsAttempt: false), due: start))
        #expect(state.attempts == 0)
        #expect(state.deferrals == 1)
    }

    @Test func `a stale lease moves nothing`() throws {
        var state = try inflight()
        let before = state
        #expect(throws: RequestState.Refusal.staleLease) {
            try state.apply(.concluded(token: "old", .delivered(status: 200), due: start))
        }
        #expect(state == before)
    }

    @Test(arguments: [
        (true, RequestState.Phase.pending(due: start)), (false, .held(.ambiguous)),
    ])
    func `a dead owner's request comes back, unless sending it twice may harm`(
        mayBeSentTwice: Bool,
        phase: RequestState.Phase
    ) throws {
        var state = try inflight(mayBeSentTwice: mayBeSentTwice)
        try state.apply(.abandoned(token: "a", now: start))
        #expect(state.phase == phase)
        #expect(state.attempts == 1)
    }

    @Test func `only what is held for a released reason comes back`() throws {
        var state = try inflight()
        try state.apply(.concluded(token: "a", .held(.configuration), due: start))
        #expect(throws: RequestState.Refusal.notHeld) {
            try state.apply(.released([.trust, .auth], now: start, isBlocked: false))
        }
        try state.apply(.released([.configuration], now: start, isBlocked: false))
        #expect(state.phase == .pending(due: start))
    }
}
