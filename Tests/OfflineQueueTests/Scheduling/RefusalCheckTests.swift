internal import Testing

@testable internal import OfflineQueue

/// Refusals that are confirmed before requests are given up because of them.
@Suite struct RefusalCheckTests {
    /// Records a refusal, with times in seconds and a delay of 4 s.
    private static func refused(
        _ check: inout RefusalCheck,
        _ status: Int = 404,
        after previous: Int? = nil,
        began: Int,
        now: Int
    ) -> Bool {
        check.refused(
            with: status,
            after: previous,
            began: .seconds(began),
            delay: .seconds(4),
            now: .seconds(now)
        )
    }

    /// A check that confirmed 404 at 5 s.
    private static func confirmed() -> RefusalCheck {
        var check = RefusalCheck(since: .zero)
        let results = [refused(&check, began: 0, now: 1), refused(&check, began: 5, now: 5)]
        #expect(results == [false, true])
        return check
    }

    @Test func `without a delivery, an attempt after the delay confirms a refusal`() {
        var check = RefusalCheck(since: .zero)
        let early = [(0, 1), (0, 2), (4, 6)].map { Self.refused(&check, began: $0, now: $1) }
        #expect(early == [false, false, false], "these attempts began less than 4 s after the first refusal")
        let later = [
            Self.refused(&check, began: 5, now: 7), Self.refused(&check, began: 0, now: 8),
            Self.refused(&check, 410, began: 8, now: 9), Self.refused(&check, 410, began: 13, now: 13),
        ]
        #expect(later == [true, true, false, true], "each status is confirmed once")
    }

    @Test func `after a delivery, only the same request confirms a refusal, and the lane stays open`() {
        var check = RefusalCheck(since: .zero)
        check.delivered()
        let first = Self.refused(&check, began: 20, now: 21)
        check.delivered()
        let other = Self.refused(&check, began: 25, now: 26)
        let same = [24, 27].map { Self.refused(&check, after: 404, began: $0, now: 28) }
        #expect([first, other] + same == [false, false, false, true])
        #expect(check.closedUntil == .seconds(25))
    }

    @Test func `a delivery after the refusal with one status also counts after the refusal with another one`()
    {
        var check = RefusalCheck(since: .zero)
        var results = [Self.refused(&check, began: 0, now: 0)]
        check.delivered()
        results += [
            Self.refused(&check, 410, began: 5, now: 5), Self.refused(&check, began: 10, now: 10),
            Self.refused(&check, 410, after: 404, began: 10, now: 11),
        ]
        #expect(results == [false, false, false, true], "both statuses of the last request end it")
    }

    @Test func `a suspicion that is five minutes old confirms nothing`() {
        var check = RefusalCheck(since: .zero)
        let results = [0, 300].map { Self.refused(&check, began: $0, now: $0) }
        #expect(results == [false, false] && check.closedUntil == .seconds(304))
    }

    @Test func `a confirmed status is final for five minutes, whatever is delivered`() {
        var check = Self.confirmed()
        let results = [6, 304, 305].map { second in
            check.delivered()
            return Self.refused(&check, began: second, now: second)
        }
        #expect(results == [true, true, false])
    }

    @Test(arguments: [nil, 404, 500])
    func `failures prevent confirmations for five minutes`(previous: Int?) {
        var check = RefusalCheck(since: .zero)
        let results = stride(from: 0, through: 420, by: 60).map { second in
            defer { check.failed(now: .seconds(second + 1)) }
            return Self.refused(&check, after: second == 0 ? nil : previous, began: second, now: second)
        }
        // Another request that is refused for the first time needs another attempt.
        #expect(results == [false, false, false, false, false, false, true, previous != nil])
    }

    @Test(arguments: [404, 500])
    func `a lane that fails and delivers is closed once, and a request ends after five minutes`(previous: Int)
    {
        var check = RefusalCheck(since: .zero)
        var closures = 0
        let results = stride(from: 0, through: 310, by: 10).map { second in
            defer {
                if check.closedUntil != nil { closures += 1 }
                check.failed(now: .seconds(second + 1))
                check.delivered()
            }
            return Self.refused(&check, after: second == 0 ? nil : previous, began: second, now: second)
        }
        #expect(results.firstIndex(of: true) == results.count - 1 && closures == 1)
    }

    @Test func `a request that is tried rarely ends, although failures are in between`() {
        var check = RefusalCheck(since: .zero)
        let results = stride(from: 0, through: 1800, by: 600).map { second in
            defer { check.failed(now: .seconds(second + 1)) }
            return Self.refused(&check, after: second == 0 ? nil : 500, began: second, now: second)
        }
        #expect(results == [false, false, true, true])
    }

    @Test func `a server with many statuses uses little memory`() {
        var check = RefusalCheck(since: .zero)
        for status in 400..<499 { _ = Self.refused(&check, status, began: 0, now: status) }
        let first = Self.refused(&check, 405, after: 400, began: 500, now: 500)
        #expect(!first && Self.refused(&check, 498, after: 405, began: 505, now: 505))
    }

    // MARK: Lanes

    private static let refusal = AttemptClassification(
        verdict: .dead(.refused, reason: "HTTP 404"),
        lane: .healthy,
        status: 404,
        detail: "HTTP 404"
    )
    private static let delivery = AttemptClassification(
        verdict: .delivered(status: 200),
        lane: .healthy,
        status: 200,
        detail: nil
    )

    private func claims(_ actions: [Scheduler.Action]) -> [Scheduler.Claim] {
        actions.compactMap { if case .claim(let claim) = $0 { claim } else { nil } }
    }

    /// Returns a scheduler that is sending requests of lanes to one origin, and the claim of each lane. The lanes have
    /// further due requests.
    private func sending(lanes: ClosedRange<Int64> = 1...1) -> (Scheduler, [Scheduler.Claim]) {
        var settings = Scheduler.Settings()
        settings.gateTimeout = .zero
        settings.inflightPerLane = 4
        var scheduler = Scheduler(settings: settings, seed: 1)
        let claimed = lanes.flatMap { id in
            let info = Scheduler.LaneInfo(id: id, host: "a", mode: .parallel)
            let ordered = claims(scheduler.handle(.rows(info, due: .zero), now: .zero))
            for claim in ordered {
                _ = scheduler.handle(.claimed(lane: id, taken: claim.limit, due: .zero), now: .zero)
            }
            return ordered
        }
        return (scheduler, claimed)
    }

    /// Ends an attempt.
    ///
    /// - Parameter mayBeRepeated: Whether the request may be sent again. Default `true`.
    /// - Returns: The classification after the check, when the request is retried, and the claims that follow.
    private func end(
        _ claim: Scheduler.Claim,
        _ classification: AttemptClassification,
        began: Moment = .zero,
        previousStatus: Int? = nil,
        mayBeRepeated: Bool = true,
        _ scheduler: inout Scheduler,
        now: Moment
    ) -> (classification: AttemptClassification, due: Moment, claims: [Scheduler.Claim]) {
        let response = Scheduler.Response(
            lane: claim.lane,
            epoch: claim.epoch,
            began: began,
            previousStatus: previousStatus,
            mayBeRepeated: mayBeRepeated
        )
        let result = scheduler.confirmed(classification, of: response, now: now)
        let settlement = scheduler.conclude(
            lane: claim.lane,
            epoch: claim.epoch,
            effect: result.lane,
            failures: 1,
            now: now
        )
        let settled = Scheduler.Event.settled(lane: claim.lane, due: settlement.due, isDistrusted: false)
        return (result, settlement.due, claims(scheduler.handle(settled, now: now)))
    }

    @Test func `a lane sends one request to confirm a refusal, and all others after it`() throws {
        var (scheduler, claims) = sending()
        let first = claims[0]
        #expect(first.limit == 4)
        let refused = end(first, Self.refusal, &scheduler, now: .seconds(1))
        #expect(refused.classification.verdict == .retry(countsAsAttempt: true))
        #expect(refused.classification.detail?.hasPrefix("HTTP 404; another attempt must confirm it") == true)
        #expect((.seconds(5) ... .seconds(7)).contains(refused.due) && refused.claims.isEmpty)
        for _ in 0..<3 {
            let sibling = end(first, Self.refusal, &scheduler, now: .seconds(2))
            #expect(sibling.classification.verdict == .retry(countsAsAttempt: true))
            #expect(sibling.due == refused.due && sibling.claims.isEmpty)
        }
        let canary = try #require(self.claims(scheduler.handle(.wake, now: refused.due)).first)
        #expect(canary.limit == 1 && canary.retries == nil)
        _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: .zero), now: refused.due)
        let confirmed = end(
            canary,
            Self.refusal,
            began: refused.due,
            &scheduler,
            now: refused.due + .seconds(1)
        )
        #expect(confirmed.classification == Self.refusal && confirmed.claims.map(\.limit) == [4])
    }

    @Test func `a request that must not be sent again ends, and its lane waits for the confirmation`() {
        var (scheduler, claims) = sending()
        let refused = end(claims[0], Self.refusal, mayBeRepeated: false, &scheduler, now: .seconds(1))
        #expect(refused.classification.verdict == Self.refusal.verdict)
        #expect(refused.classification.lane == .unconfirmed && refused.claims.isEmpty)
        #expect(scheduler.waitReason(ofLane: 1, now: .seconds(2)) == .laneClosed)
    }

    @Test func `a lane that has delivered since a refusal is not closed by the next one`() {
        var (scheduler, claims) = sending()
        _ = end(claims[0], Self.refusal, &scheduler, now: .seconds(1))
        _ = end(claims[0], Self.delivery, began: .seconds(7), &scheduler, now: .seconds(8))
        let next = end(claims[0], Self.refusal, began: .seconds(8), &scheduler, now: .seconds(9))
        #expect(next.classification.lane == .unconfirmed)
        #expect(scheduler.waitReason(ofLane: 1, now: .seconds(10)) != .laneClosed)
        #expect((.seconds(13) ... .seconds(15)).contains(next.due))
    }

    @Test func `only the request that was refused confirms the refusal of a lane that delivers`() {
        var (scheduler, claims) = sending()
        _ = end(claims[0], Self.delivery, &scheduler, now: .seconds(1))
        let first = end(claims[0], Self.refusal, &scheduler, now: .seconds(1))
        _ = end(claims[0], Self.delivery, began: .seconds(7), &scheduler, now: .seconds(8))
        let again = end(
            claims[0],
            Self.refusal,
            began: .seconds(8),
            previousStatus: 404,
            &scheduler,
            now: .seconds(9)
        )
        #expect(first.classification.lane == .unconfirmed && again.classification == Self.refusal)
    }

    @Test(arguments: [false, true])
    func `a failure of another lane of the origin ends the confirmations before it`(hasFailed: Bool) {
        var (scheduler, claims) = sending(lanes: 1...2)
        scheduler.lanes[1]!.refusals = Self.confirmed()
        if hasFailed {
            let failure = AttemptClassification(
                verdict: .retry(countsAsAttempt: true),
                lane: .failure,
                status: 500,
                detail: "HTTP 500"
            )
            _ = end(claims[1], failure, &scheduler, now: .seconds(6))
        }
        let refused = end(claims[0], Self.refusal, began: .seconds(6), &scheduler, now: .seconds(7))
        #expect((refused.classification == Self.refusal) != hasFailed)
    }

    @Test func `a new path makes the next refusal not final`() {
        var (scheduler, _) = sending()
        scheduler.lanes[1]!.refusals = Self.confirmed()
        for (second, state) in [(6, GateState.notReachable), (7, .reachable(generation: 1))] {
            _ = scheduler.handle(.gate(.https("a"), state), now: .seconds(second))
        }
        let epoch = scheduler.lanes[1]!.epoch
        let claim = Scheduler.Claim(lane: 1, limit: 1, releasing: nil, retries: nil, epoch: epoch)
        let refused = end(claim, Self.refusal, began: .seconds(8), &scheduler, now: .seconds(9))
        #expect(refused.classification.lane == .unconfirmed)
    }

    @Test func `the caller's choice of a status is final at once`() {
        var (scheduler, claims) = sending()
        let chosen = Self.refusal.ended(reason: "HTTP 404")
        #expect(end(claims[0], chosen, &scheduler, now: .seconds(1)).classification == chosen)
    }
}
