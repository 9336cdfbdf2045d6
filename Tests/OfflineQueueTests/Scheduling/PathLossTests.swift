internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// What happens to attempts when a path is lost and found again, and how fast they are retried.
@Suite struct PathLossTests {
    private let lane = Scheduler.LaneInfo(id: 1, host: "a", mode: .parallel)
    private let grace = Scheduler.Settings().lossGrace

    private func route(_ route: UInt64, generation: UInt64 = 1) -> GateState {
        .reachable(generation: generation, route: route)
    }

    /// Returns a scheduler with one attempt in flight over path 1, and the claim of the attempt.
    private func sending(_ settings: Scheduler.Settings = Scheduler.Settings()) -> (
        Scheduler, Scheduler.Claim
    ) {
        var scheduler = Scheduler(settings: settings, seed: 1)
        _ = scheduler.handle(.rows(lane, due: .zero), now: .zero)
        let actions = scheduler.handle(.gate(.https("a"), route(1)), now: .zero)
        let claim = claims(actions)[0]
        _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: nil), now: .zero)
        return (scheduler, claim)
    }

    private func claims(_ actions: [Scheduler.Action]) -> [Scheduler.Claim] {
        actions.compactMap { if case .claim(let claim) = $0 { claim } else { nil } }
    }

    private func ends(_ actions: [Scheduler.Action]) -> [Scheduler.Action] {
        actions.filter {
            switch $0 {
            case .abort, .endLost: true
            case .claim, .release, .dropConnections, .restartStalled, .interrupt, .load, .watch,
                .unwatch, .probePortal:
                false
            }
        }
    }

    // MARK: Grace period

    @Test func `an attempt over a lost path ends after the grace period, even when every slot is in use`() {
        var settings = Scheduler.Settings()
        settings.inflight = 1
        var (scheduler, _) = sending(settings)
        let lost = scheduler.handle(.gate(.https("a"), .notReachable), now: .seconds(1))
        #expect(ends(lost).isEmpty, "a response may still arrive")
        #expect(scheduler.nextWake(now: .seconds(1)) == .seconds(1) + grace)
        let early = scheduler.handle(.wake, now: .seconds(1) + grace - .milliseconds(1))
        #expect(ends(early).isEmpty)
        let over = scheduler.handle(.wake, now: .seconds(1) + grace)
        #expect(ends(over) == [.endLost(.https("a"), begunBefore: .seconds(1) + grace)])
        #expect(scheduler.nextWake(now: .seconds(1) + grace) != .seconds(1) + grace)
    }

    @Test func `a short loss of the same path ends no transfer`() {
        var (scheduler, _) = sending()
        _ = scheduler.handle(.gate(.https("a"), .notReachable), now: .seconds(1))
        let found = scheduler.handle(.gate(.https("a"), route(1, generation: 2)), now: .seconds(3))
        #expect(ends(found).isEmpty && found.contains(.dropConnections))
        let later = ends(scheduler.handle(.wake, now: .seconds(60)))
        #expect(later.isEmpty)
        let flap = scheduler.handle(.gate(.https("a"), route(1, generation: 3)), now: .seconds(61))
        #expect(ends(flap).isEmpty, "a loss that was too short to be published")
    }

    @Test func `after another path is found, attempts that are not aborted end with their grace period`() {
        var (scheduler, _) = sending()
        _ = scheduler.handle(.gate(.https("a"), .notReachable), now: .seconds(1))
        let found = scheduler.handle(.gate(.https("a"), route(2, generation: 2)), now: .seconds(2))
        #expect(ends(found) == [.abort(.https("a"))])
        let over = scheduler.handle(.wake, now: .seconds(1) + grace)
        #expect(
            ends(over) == [.endLost(.https("a"), begunBefore: .seconds(2))],
            "attempts over the new path continue"
        )
    }

    @Test func `a second loss within a grace period gets its own grace period`() {
        var (scheduler, _) = sending()
        _ = scheduler.handle(.gate(.https("a"), .notReachable), now: .seconds(1))
        _ = scheduler.handle(.gate(.https("a"), route(2, generation: 2)), now: .seconds(2))
        _ = scheduler.handle(.gate(.https("a"), .notReachable), now: .seconds(3))
        let first = scheduler.handle(.wake, now: .seconds(1) + grace)
        #expect(ends(first) == [.endLost(.https("a"), begunBefore: .seconds(2))])
        let second = scheduler.handle(.wake, now: .seconds(3) + grace)
        #expect(ends(second) == [.endLost(.https("a"), begunBefore: .seconds(3) + grace)])
    }

    @Test func `a path that is replaced within another path's grace period gets its own grace period`() {
        var (scheduler, _) = sending()
        _ = scheduler.handle(.gate(.https("a"), .notReachable), now: .seconds(1))
        _ = scheduler.handle(.gate(.https("a"), route(2, generation: 2)), now: .seconds(2))
        _ = scheduler.handle(.gate(.https("a"), route(1, generation: 3)), now: .seconds(3))
        let first = scheduler.handle(.wake, now: .seconds(1) + grace)
        #expect(ends(first) == [.endLost(.https("a"), begunBefore: .seconds(2))])
        let second = scheduler.handle(.wake, now: .seconds(3) + grace)
        #expect(ends(second) == [.endLost(.https("a"), begunBefore: .seconds(3))])
    }

    @Test func `the first known path ends no attempt that began while the state was unknown`() {
        var scheduler = Scheduler(seed: 1)
        _ = scheduler.handle(.rows(lane, due: .zero), now: .zero)
        let claim = claims(scheduler.handle(.gate(.https("a"), .unknown), now: .zero))
        #expect(claim.count == 1)
        _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: nil), now: .zero)
        let found = scheduler.handle(.gate(.https("a"), route(1)), now: .seconds(1))
        #expect(ends(found).isEmpty && found.contains(.restartStalled(.https("a"))))
        let later = ends(scheduler.handle(.wake, now: .seconds(60)))
        #expect(later.isEmpty)
        let moved = ends(scheduler.handle(.gate(.https("a"), route(2, generation: 2)), now: .seconds(61)))
        #expect(moved == [.abort(.https("a"))])
    }

    @Test func `another path aborts repeatable attempts immediately, without a loss in between`() {
        var (scheduler, _) = sending()
        let moved = scheduler.handle(.gate(.https("a"), route(2, generation: 2)), now: .seconds(1))
        #expect(ends(moved) == [.abort(.https("a"))])
        let over = ends(scheduler.handle(.wake, now: .seconds(1) + grace))
        #expect(over == [.endLost(.https("a"), begunBefore: .seconds(1))], "the others end later")
    }

    @Test func `a late first gate state ends no attempt`() {
        var scheduler = Scheduler(seed: 1)
        _ = scheduler.handle(.rows(lane, due: .zero), now: .zero)
        let timeout = Scheduler.Settings().gateTimeout
        #expect(claims(scheduler.handle(.wake, now: timeout)).count == 1)
        _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: nil), now: timeout)
        let word = scheduler.handle(.gate(.https("a"), route(2)), now: timeout + .seconds(1))
        #expect(ends(word).isEmpty && !word.contains(.dropConnections))
        #expect(word.contains(.restartStalled(.https("a"))))
    }

    @Test func `a first gate state in time ends no attempt that a flush started`() {
        var scheduler = Scheduler(seed: 1)
        _ = scheduler.handle(.rows(lane, due: .zero), now: .zero)
        #expect(claims(scheduler.handle(.flush(.all), now: .zero)).count == 1)
        _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: nil), now: .zero)
        let word = ends(scheduler.handle(.gate(.https("a"), route(2)), now: .milliseconds(10)))
        #expect(word.isEmpty)
    }

    @Test func `stalled attempts restart as soon as a path is found`() {
        var (scheduler, _) = sending()
        let flap = scheduler.handle(.gate(.https("a"), route(1, generation: 2)), now: .seconds(1))
        #expect(flap.contains(.restartStalled(.https("a"))), "a loss that was too short to be published")
        let lost = scheduler.handle(.gate(.https("a"), .notReachable), now: .seconds(2))
        #expect(!lost.contains(.restartStalled(.https("a"))))
        let found = scheduler.handle(.gate(.https("a"), route(1, generation: 3)), now: .seconds(3))
        #expect(found.contains(.restartStalled(.https("a"))))
    }

    @Test func `a path that is lost after an unknown state gets a grace period`() {
        var (scheduler, _) = sending()
        _ = scheduler.handle(.gate(.https("a"), .unknown), now: .seconds(1))
        _ = scheduler.handle(.gate(.https("a"), .notReachable), now: .seconds(2))
        let over = ends(scheduler.handle(.wake, now: .seconds(2) + grace))
        #expect(over == [.endLost(.https("a"), begunBefore: .seconds(2) + grace)])
    }

    @Test func `a stop ends attempts within their grace period`() {
        var (scheduler, _) = sending()
        _ = scheduler.handle(.gate(.https("a"), .notReachable), now: .seconds(1))
        let stopped = ends(scheduler.handle(.stop, now: .seconds(2)))
        #expect(stopped == [.endLost(.https("a"), begunBefore: .seconds(2))])
        #expect(scheduler.nextWake(now: .seconds(2)) == nil)
    }

    @Test func `a gate whose state becomes unknown ends no attempt`() {
        var (scheduler, _) = sending()
        _ = scheduler.handle(.gate(.https("a"), .notReachable), now: .seconds(1))
        _ = scheduler.handle(.gate(.https("a"), .unknown), now: .seconds(2))
        let later = ends(scheduler.handle(.wake, now: .seconds(60)))
        #expect(later.isEmpty)
    }

    // MARK: Fast retries

    /// Returns the delays of retries after failures to connect, when each retry starts as soon as its delay is over.
    private func delays(
        _ scheduler: inout Scheduler,
        _ claim: inout Scheduler.Claim,
        from start: Moment,
        isPathError: Bool = false
    ) -> [Duration] {
        var (now, delays) = (start, [Duration]())
        while scheduler.isReconnecting(lane: 1, isPathError: isPathError, now: now) {
            let settlement = scheduler.conclude(
                lane: 1,
                epoch: claim.epoch,
                effect: .reconnect,
                failures: 1,
                now: now
            )
            delays.append(settlement.due - now)
            let settled = Scheduler.Event.settled(lane: 1, due: settlement.due, isDistrusted: false)
            let meanwhile = claims(scheduler.handle(settled, now: now))
            #expect(meanwhile.isEmpty)
            now = settlement.due
            let next = claims(scheduler.handle(.wake, now: now))
            guard next.count == 1 else { return delays }
            claim = next[0]
            _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: nil), now: now)
        }
        return delays
    }

    private let fast: [Duration] = [50, 100, 200, 400, 800, 1600, 3200].map { .milliseconds($0) }

    @Test func `for 5 s after a change to reachable, connecting is repeated after 50, 100, 200, … ms`() {
        var (scheduler, _) = sending()
        _ = scheduler.handle(.gate(.https("a"), .notReachable), now: .seconds(1))
        _ = scheduler.handle(.settled(lane: 1, due: .seconds(1), isDistrusted: false), now: .seconds(1))
        let found = scheduler.handle(.gate(.https("a"), route(1, generation: 2)), now: .seconds(2))
        var claim = claims(found)[0]
        _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: nil), now: .seconds(2))
        let seen = delays(&scheduler, &claim, from: .seconds(2))
        #expect(seen == fast)
        let isLate = scheduler.isReconnecting(lane: 1, isPathError: false, now: .seconds(7))
        #expect(!isLate)
    }

    @Test func `the gate's first state is not a path change, but the first path error starts fast retries`() {
        var (scheduler, claim) = sending()
        let isEarly = scheduler.isReconnecting(lane: 1, isPathError: false, now: .zero)
        #expect(!isEarly)
        let seen = delays(&scheduler, &claim, from: .zero, isPathError: true)
        #expect(seen == fast)
        let isRepeated = scheduler.isReconnecting(lane: 1, isPathError: true, now: .seconds(60))
        #expect(!isRepeated)
        _ = scheduler.conclude(lane: 1, epoch: 0, effect: .healthy, failures: 1, now: .seconds(61))
        let isRenewed = scheduler.isReconnecting(lane: 1, isPathError: true, now: .seconds(62))
        #expect(isRenewed)
    }

    @Test func `fast retries do not make the next closure longer`() {
        var (scheduler, claim) = sending()
        let last = delays(&scheduler, &claim, from: .zero, isPathError: true).reduce(.zero, +)
        let closed = scheduler.conclude(lane: 1, epoch: claim.epoch, effect: .close, failures: 1, now: last)
        #expect((.seconds(2)...(.seconds(4))).contains(closed.due - last))
    }

    @Test(arguments: [LaneEffect.reconnect, .shortage])
    func `an attempt in flight does not delay the retry of another one`(effect: LaneEffect) {
        var scheduler = Scheduler(seed: 1)
        _ = scheduler.handle(.rows(lane, due: .zero), now: .zero)
        let claim = claims(scheduler.handle(.gate(.https("a"), route(1)), now: .zero))[0]
        _ = scheduler.handle(.claimed(lane: 1, taken: 2, due: nil), now: .zero)
        let settlement = scheduler.conclude(
            lane: 1,
            epoch: claim.epoch,
            effect: effect,
            failures: 1,
            now: .zero
        )
        _ = scheduler.handle(.settled(lane: 1, due: settlement.due, isDistrusted: false), now: .zero)
        #expect(scheduler.inflight == 1)
        let again = claims(scheduler.handle(.wake, now: settlement.due))
        #expect(again.count == 1)
    }

    // MARK: Shortages

    @Test func `a local shortage has its own backoff and is reported`() {
        var (scheduler, claim) = sending()
        var now = Moment.zero
        for round in 0..<12 {
            let settlement = scheduler.conclude(
                lane: 1,
                epoch: claim.epoch,
                effect: .shortage,
                failures: 100,
                now: now
            )
            let ceiling = min(Duration.seconds(30), .milliseconds(500) * (1 << round))
            #expect((.milliseconds(500)...ceiling).contains(settlement.due - now))
            _ = scheduler.handle(.settled(lane: 1, due: settlement.due, isDistrusted: false), now: now)
            #expect(scheduler.isShort(lane: 1, now: now))
            #expect(scheduler.waitReason(ofLane: 1, now: now) == .localShortage)
            now = settlement.due
            claim = claims(scheduler.handle(.wake, now: now))[0]
            _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: nil), now: now)
        }
        #expect(!scheduler.isShort(lane: 1, now: now))
    }
}
