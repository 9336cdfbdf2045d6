internal import NetworkReachability
internal import OfflineQueue
internal import Testing

@Suite struct SchedulerTests {
    private let cap = Duration.seconds(900)

    private func lane(
        _ id: Int64 = 1,
        host: String = "a",
        mode: LaneKey.Mode = .parallel,
        notBefore: Moment? = nil
    ) -> Scheduler.LaneInfo {
        Scheduler.LaneInfo(id: id, host: host, mode: mode, notBefore: notBefore)
    }

    /// Returns a scheduler that does not wait for the gate's first state. ``SilentGateTests`` tests the wait.
    private func scheduler() -> Scheduler {
        var settings = Scheduler.Settings()
        settings.gateTimeout = .zero
        return Scheduler(settings: settings, seed: 1)
    }

    private func claims(_ actions: [Scheduler.Action]) -> [Scheduler.Claim] {
        actions.compactMap { action in
            if case .claim(let claim) = action { claim } else { nil }
        }
    }

    /// Returns a scheduler whose only lane has one request in flight, and the claim of that request.
    private func sending(
        _ mode: LaneKey.Mode = .parallel,
        gate: GateState? = nil
    ) -> (Scheduler, Scheduler.Claim) {
        var scheduler = scheduler()
        let actions = scheduler.handle(.rows(lane(mode: mode), due: .zero), now: .zero)
        let claim = claims(actions)[0]
        answer(scheduler.handle(.claimed(lane: 1, taken: 1, due: nil), now: .zero), &scheduler)
        if let gate { answer(scheduler.handle(.gate(.https("a"), gate), now: .zero), &scheduler) }
        return (scheduler, claim)
    }

    /// Reports that all claims found no request.
    private func answer(_ actions: [Scheduler.Action], _ scheduler: inout Scheduler) {
        for claim in claims(actions) {
            _ = scheduler.handle(.claimed(lane: claim.lane, taken: 0, due: nil), now: .zero)
        }
    }

    /// Concludes an attempt with `effect`, and reports that the request waits for a retry.
    private func fail(
        _ scheduler: inout Scheduler,
        _ claim: Scheduler.Claim,
        _ effect: LaneEffect,
        now: Moment = .seconds(1)
    ) -> (due: Moment, claims: [Scheduler.Claim]) {
        let settlement = scheduler.conclude(
            lane: 1,
            epoch: claim.epoch,
            effect: effect,
            failures: 1,
            now: now
        )
        let event = Scheduler.Event.settled(lane: 1, due: settlement.due, isDistrusted: false)
        return (settlement.due, claims(scheduler.handle(event, now: now)))
    }

    @Test(arguments: [LaneKey.Mode.fifo, .parallel])
    func `after a success the lane's next request gets the slot, in the same transaction`(mode: LaneKey.Mode)
    {
        var (scheduler, claim) = sendingInOnlySlot(mode)
        _ = scheduler.handle(.rows(lane(mode: mode), due: .zero), now: .seconds(1))
        #expect(claimNext(&scheduler, claim, .healthy, now: .seconds(2))?.limit == 1)
        #expect(claims(scheduler.handle(.nextClaimed(lane: 1, taken: 1, due: nil), now: .seconds(2))).isEmpty)
        #expect(scheduler.inflight == 1)
        #expect(claimNext(&scheduler, claim, .failure, now: .seconds(3)) == nil)
    }

    @Test func `a lane does not claim its next request while another lane of its origin waits for a slot`() {
        var (scheduler, claim) = sendingInOnlySlot(.fifo)
        _ = scheduler.handle(.rows(lane(2, mode: .fifo), due: .zero), now: .zero)
        #expect(claimNext(&scheduler, claim, .healthy, now: .seconds(1)) == nil)
        let settled = scheduler.handle(.settled(lane: 1, due: nil, isDistrusted: false), now: .seconds(1))
        #expect(claims(settled).map(\.lane) == [2])
    }

    @Test func `a request reported during several claims is not missed when the first claim returns`() {
        var (scheduler, claim) = sendingInOnlySlot(.parallel)
        _ = scheduler.handle(.rows(lane(), due: .seconds(1)), now: .zero)
        #expect(claimNext(&scheduler, claim, .healthy, now: .seconds(1)) != nil)
        _ = scheduler.handle(.rows(lane(), due: .seconds(5)), now: .seconds(1))
        // The store executed the claim before the request was enqueued.
        _ = scheduler.handle(.nextClaimed(lane: 1, taken: 0, due: nil), now: .seconds(1))
        #expect(scheduler.nextWake(now: .seconds(1)) == .seconds(5))
    }

    /// Returns a scheduler with one slot for each origin, and the claim of the request that uses the slot of its
    /// origin.
    private func sendingInOnlySlot(_ mode: LaneKey.Mode) -> (Scheduler, Scheduler.Claim) {
        var settings = Scheduler.Settings()
        settings.gateTimeout = .zero
        (settings.inflightPerLane, settings.inflightPerOrigin) = (1, 1)
        var scheduler = Scheduler(settings: settings, seed: 1)
        let claim = claims(scheduler.handle(.rows(lane(mode: mode), due: .zero), now: .zero))[0]
        _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: nil), now: .zero)
        return (scheduler, claim)
    }

    private func claimNext(
        _ scheduler: inout Scheduler,
        _ claim: Scheduler.Claim,
        _ effect: LaneEffect,
        now: Moment
    ) -> Scheduler.Claim? {
        _ = scheduler.conclude(lane: 1, epoch: claim.epoch, effect: effect, failures: 1, now: now)
        return scheduler.claimNext(lane: 1, after: effect, now: now)
    }

    @Test func `a new lane is watched and tried immediately`() {
        var scheduler = scheduler()
        let actions = scheduler.handle(.rows(lane(), due: .zero), now: .zero)
        #expect(actions.first == .watch(.https("a")))
        #expect(claims(actions).map(\.limit) == [8])
    }

    @Test func `an attempt that must be repeated is due immediately`() {
        var (scheduler, claim) = sending()
        #expect(fail(&scheduler, claim, .again, now: .seconds(3)).due == .seconds(3))
    }

    @Test func `a FIFO lane sends one request at a time`() {
        var scheduler = scheduler()
        #expect(
            claims(scheduler.handle(.rows(lane(mode: .fifo), due: .zero), now: .zero)).map(\.limit) == [1]
        )
        let next = scheduler.handle(.claimed(lane: 1, taken: 1, due: nil), now: .zero)
        #expect(claims(next).isEmpty)
        #expect(claims(scheduler.handle(.rows(lane(mode: .fifo), due: .zero), now: .zero)).isEmpty)
        let settled = Scheduler.Event.settled(lane: 1, due: nil, isDistrusted: false)
        #expect(claims(scheduler.handle(settled, now: .zero)).map(\.limit) == [1])
    }

    @Test func `three origins leave slots for others`() {
        var scheduler = scheduler()
        var granted: [Int64: Int] = [:]
        for id in 1...6 as ClosedRange<Int64> {
            for claim in claims(scheduler.handle(.rows(lane(id, host: "\(id)"), due: .zero), now: .zero)) {
                granted[claim.lane, default: 0] += claim.limit
            }
            _ = scheduler.conclude(lane: id, epoch: 0, effect: .healthy, failures: 1, now: .zero)
        }
        #expect(granted == [1: 8, 2: 8, 3: 8, 4: 1, 5: 1, 6: 1])
        for (id, taken) in granted {
            _ = scheduler.handle(.claimed(lane: id, taken: taken, due: .zero), now: .zero)
        }
        var next: [Int64] = []
        for _ in 0..<3 {
            let event = Scheduler.Event.settled(lane: 1, due: nil, isDistrusted: false)
            next += claims(scheduler.handle(event, now: .zero)).map(\.lane)
        }
        #expect(Set(next).isSuperset(of: [5, 6]))
    }

    @Test func `a path failure closes the lane, and the next try is a single request`() throws {
        var (scheduler, claim) = sending()
        let (due, claims) = fail(&scheduler, claim, .close)
        #expect(claims.isEmpty)
        #expect((.seconds(3) ... .seconds(5)).contains(due))
        #expect(scheduler.nextWake(now: .seconds(1)) == due)
        #expect(scheduler.waitReason(ofLane: 1, now: .seconds(1)) == .laneClosed)
        #expect(self.claims(scheduler.handle(.wake, now: due)).map(\.limit) == [1])
    }

    @Test func `a path that is found ends a pending backoff`() {
        var (scheduler, claim) = sending(gate: .notReachable)
        _ = fail(&scheduler, claim, .close)
        let actions = scheduler.handle(.gate(.https("a"), .reachable(generation: 1)), now: .seconds(2))
        #expect(actions.first == .dropConnections)
        #expect(claims(actions).map(\.limit) == [1], "a canary")
        #expect(claims(actions).first?.releasing == [.trust])
    }

    @Test func `a new path generation is a path change, and the same generation is not`() {
        var (scheduler, first) = sending()
        _ = fail(&scheduler, first, .close)
        let edge = scheduler.handle(.gate(.https("a"), .reachable(generation: 1)), now: .seconds(2))
        _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: nil), now: .seconds(2))
        _ = fail(&scheduler, claims(edge)[0], .close, now: .seconds(2))
        let same = scheduler.handle(.gate(.https("a"), .reachable(generation: 1)), now: .seconds(2))
        #expect(same.isEmpty)
        let new = scheduler.handle(.gate(.https("a"), .reachable(generation: 2)), now: .seconds(2))
        #expect(new.contains(.dropConnections) && claims(new).count == 1)
    }

    @Test func `a failure over the old path does not close the lane on the new path`() {
        var (scheduler, claim) = sending(gate: .notReachable)
        _ = scheduler.handle(.gate(.https("a"), .reachable(generation: 1)), now: .seconds(1))
        _ = scheduler.handle(.claimed(lane: 1, taken: 0, due: nil), now: .seconds(1))
        let (due, claims) = fail(&scheduler, claim, .close, now: .seconds(2))
        #expect(due == .seconds(2))
        #expect(claims.map(\.limit) == [1], "a canary")
    }

    @Test func `another reason why there is no path is reported, and postpones no attempt`() {
        var scheduler = scheduler()
        _ = scheduler.handle(.rows(lane(), due: .zero), now: .zero)
        _ = scheduler.handle(.claimed(lane: 1, taken: 0, due: .seconds(5)), now: .zero)
        var words: [String?] = []
        for (second, reason) in [(1, .noRoute), (100, .noCarrier)] as [(Int, PathStatus.Reason)] {
            let now = Moment.seconds(second)
            #expect(claims(scheduler.handle(.gate(.https("a"), .down(reason)), now: now)).isEmpty)
            words.append(scheduler.waitReason(ofLane: 1, now: .seconds(200)).map { "\($0)" })
            #expect(scheduler.nextWake(now: now) == .seconds(1) + cap, "the outage began at 1 s")
        }
        #expect(words == ["not reachable: no route", "not reachable: no carrier"])
    }

    @Test func `an unreachable host is tried once per longest backoff`() {
        var scheduler = scheduler()
        _ = scheduler.handle(.rows(lane(), due: .zero), now: .zero)
        _ = scheduler.handle(.claimed(lane: 1, taken: 0, due: .seconds(5)), now: .zero)
        _ = scheduler.handle(.gate(.https("a"), .notReachable), now: .seconds(1))
        #expect(scheduler.nextWake(now: .seconds(1)) == .seconds(1) + cap)
        #expect(scheduler.waitReason(ofLane: 1, now: .seconds(6)) == .noPath)
        #expect(claims(scheduler.handle(.wake, now: .seconds(900))).isEmpty)
        #expect(claims(scheduler.handle(.rows(lane(), due: .seconds(900)), now: .seconds(900))).isEmpty)
        let probe = claims(scheduler.handle(.wake, now: .seconds(1) + cap))
        #expect(probe.map(\.limit) == [1])
        _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: .zero), now: .seconds(1) + cap)
        let failed = fail(&scheduler, probe[0], .close, now: .seconds(2) + cap)
        #expect(failed.claims.isEmpty)
        #expect(scheduler.nextWake(now: .seconds(2) + cap) == .seconds(1) + cap * 2)
    }

    @Test func `Retry-After closes the whole lane, and neither a success nor a path change opens it`() {
        var (scheduler, claim) = sending(gate: .unknown)
        let (due, claims) = fail(&scheduler, claim, .closeFor(.seconds(100)))
        #expect((.seconds(101) ... .seconds(111)).contains(due))
        #expect(claims.isEmpty)
        _ = scheduler.conclude(lane: 1, epoch: 0, effect: .healthy, failures: 1, now: .seconds(2))
        let edge = scheduler.handle(.gate(.https("a"), .reachable(generation: 1)), now: .seconds(3))
        #expect(self.claims(edge).isEmpty)
        #expect(self.claims(scheduler.handle(.rows(lane(), due: .zero), now: .seconds(4))).isEmpty)
        #expect(scheduler.nextWake(now: .seconds(4)) == due)
        #expect(self.claims(scheduler.handle(.wake, now: due)).count == 1)
    }

    @Test func `a lane that the server closed stays closed after a restart`() {
        var scheduler = scheduler()
        let info = lane(notBefore: .seconds(60))
        #expect(claims(scheduler.handle(.rows(info, due: .zero), now: .zero)).isEmpty)
        #expect(scheduler.nextWake(now: .zero) == .seconds(60))
    }

    @Test
    func `a late failure has its own backoff after the lane was closed and opened`() {
        var (scheduler, claim) = sending()
        func conclude(_ effect: LaneEffect) -> Moment {
            scheduler.conclude(lane: 1, epoch: claim.epoch, effect: effect, failures: 1, now: .seconds(1)).due
        }
        _ = conclude(.close)
        _ = conclude(.healthy)
        #expect(conclude(.failure) >= .seconds(1) + Backoff().base)
    }

    @Test func `the failures of attempts that started together close a lane once`() {
        var scheduler = scheduler()
        let claim = claims(scheduler.handle(.rows(lane(), due: .zero), now: .zero))[0]
        _ = scheduler.handle(.claimed(lane: 1, taken: 8, due: nil), now: .zero)
        let dues = (0..<8).map { _ in fail(&scheduler, claim, .close).due }
        #expect(Set(dues).count == 1)
        #expect(dues[0] <= .seconds(5))
    }

    @Test func `five failures in a row close the lane, and a success resets the count`() {
        func closes(afterSuccess: Bool) -> Bool {
            var (scheduler, claim) = sending()
            for round in 0..<5 {
                if afterSuccess, round == 4 {
                    _ = scheduler.conclude(lane: 1, epoch: 0, effect: .healthy, failures: 1, now: .zero)
                }
                _ = scheduler.conclude(lane: 1, epoch: 0, effect: .failure, failures: 1, now: .zero)
            }
            _ = claim
            return scheduler.waitReason(ofLane: 1, now: .zero) == .laneClosed
        }
        #expect(closes(afterSuccess: false))
        #expect(!closes(afterSuccess: true))
    }

    @Test func `an untrusted server is retried automatically after 5 to 15 minutes`() throws {
        var (scheduler, claim) = sending()
        _ = scheduler.conclude(lane: 1, epoch: claim.epoch, effect: .distrust, failures: 1, now: .zero)
        let held = Scheduler.Event.settled(lane: 1, due: nil, isDistrusted: true)
        #expect(claims(scheduler.handle(held, now: .zero)).isEmpty)
        let wake = try #require(scheduler.nextWake(now: .zero))
        #expect((.seconds(300) ... .seconds(900)).contains(wake))
        #expect(claims(scheduler.handle(.wake, now: wake)).first?.releasing == [.trust])
    }

    @Test func `a lane with a wrong configuration waits for a flush`() {
        var (scheduler, claim) = sending()
        _ = fail(&scheduler, claim, .hold)
        #expect(scheduler.nextWake(now: .seconds(1)) == nil)
        let flush = claims(scheduler.handle(.flush(.all), now: .seconds(2)))
        #expect(flush.first?.releasing == [.trust, .configuration, .auth])
    }

    @Test func `a flush ignores the gate, backoff and Retry-After`() {
        var (scheduler, claim) = sending(gate: .notReachable)
        _ = fail(&scheduler, claim, .closeFor(.seconds(100)))
        let flushed = claims(scheduler.handle(.flush(.all), now: .seconds(2)))
        #expect(flushed.map(\.limit) == [5], "8 slots, reduced by 0.7 after the 429")
    }

    @Test func `a flush of another host, label or submitter does not open a lane`() {
        var (scheduler, claim) = sending(gate: .notReachable)
        _ = fail(&scheduler, claim, .closeFor(.seconds(100)))
        let others = [
            LaneSelection(host: "other.example"), LaneSelection(label: "other"), LaneSelection(submitter: 7),
        ]
        for selection in others {
            #expect(claims(scheduler.handle(.flush(selection), now: .seconds(2))).isEmpty)
        }
        let own = LaneSelection(host: lane().origin.host, label: lane().key.label)
        #expect(claims(scheduler.handle(.flush(own), now: .seconds(2))).count == 1)
    }

    @Test func `requests that arrive during a claim are not missed`() {
        var scheduler = scheduler()
        _ = scheduler.handle(.rows(lane(), due: .zero), now: .zero)
        _ = scheduler.handle(.rows(lane(), due: .zero), now: .zero)
        // The store executed the claim before the second request was enqueued.
        let next = scheduler.handle(.claimed(lane: 1, taken: 1, due: nil), now: .zero)
        #expect(claims(next).map(\.limit) == [7])
    }

    @Test func `the ports of a host have separate gates`() {
        var scheduler = Scheduler(seed: 1)
        let lanes = [443, 8443].enumerated().map { index, port in
            let origin = Origin(scheme: "https", host: "a", port: port)
            return Scheduler.LaneInfo(id: Int64(index), origin: origin, mode: .parallel)
        }
        let other = lanes[1].origin.endpoint
        let actions = lanes.flatMap { scheduler.handle(.rows($0, due: .zero), now: .zero) }
        #expect(actions == [.watch(.https("a")), .watch(other)])
        _ = scheduler.handle(.gate(other, .notReachable), now: .zero)
        let found = scheduler.handle(.gate(.https("a"), .reachable(generation: 1)), now: .zero)
        #expect(claims(found).map(\.lane) == [0])
        #expect(scheduler.waitReason(ofLane: 1, now: .zero) == .noPath)
        _ = scheduler.handle(.claimed(lane: 0, taken: 1, due: nil), now: .zero)
        // The attempts to the other port continue over their path.
        let changed = scheduler.handle(.gate(other, .reachable(generation: 1, route: 2)), now: .seconds(1))
        #expect(claims(changed).map(\.lane) == [1])
        #expect(!changed.contains(.abort(.https("a"))))
        let ended = scheduler.handle(.claimed(lane: 1, taken: 0, due: nil), now: .seconds(1))
        #expect(ended == [.unwatch(other)])
    }

    @Test func `a lane without requests is removed with its host`() {
        var scheduler = scheduler()
        _ = scheduler.handle(.rows(lane(), due: .zero), now: .zero)
        let actions = scheduler.handle(.claimed(lane: 1, taken: 0, due: nil), now: .zero)
        #expect(actions == [.unwatch(.https("a"))])
    }

    @Test func `a stopped scheduler claims nothing`() {
        var scheduler = scheduler()
        _ = scheduler.handle(.stop, now: .zero)
        #expect(claims(scheduler.handle(.rows(lane(), due: .zero), now: .zero)).isEmpty)
        #expect(scheduler.nextWake(now: .zero) == nil)
    }
}
