internal import Testing

@testable internal import OfflineQueue

/// Changes of the settings while requests wait and are in flight.
@Suite struct SchedulerSettingsTests {
    private let now = Moment.seconds(1)

    /// The numbers of requests in flight.
    private var numbers: [WritableKeyPath<Scheduler.Settings, Int>] {
        [\.inflight, \.inflightPerOrigin, \.inflightPerLane]
    }

    /// Settings that limit nothing in these tests.
    private var unlimited: Scheduler.Settings {
        var settings = Scheduler.Settings()
        settings.gateTimeout = .zero
        settings.reservedShare = 0
        (settings.inflight, settings.inflightPerOrigin, settings.inflightPerLane) = (100, 100, 100)
        return settings
    }

    private func lane(_ id: Int64, _ host: String = "a", _ label: String = "") -> Scheduler.LaneInfo {
        let origin = Origin(scheme: "https", host: host, port: 443)
        return Scheduler.LaneInfo(id: id, origin: origin, label: label, mode: .parallel)
    }

    private func claims(_ actions: [Scheduler.Action]) -> [Scheduler.Claim] {
        actions.compactMap { if case .claim(let claim) = $0 { claim } else { nil } }
    }

    /// Reports that all claims found as many requests as they permit, and that the lanes have more.
    @discardableResult private func answer(_ actions: [Scheduler.Action], _ scheduler: inout Scheduler)
        -> [Scheduler.Claim]
    {
        let claims = claims(actions)
        for claim in claims {
            _ = scheduler.handle(.claimed(lane: claim.lane, taken: claim.limit, due: .zero), now: now)
        }
        return claims
    }

    /// Returns a scheduler whose lane 1 has as many requests in flight as the settings permit, and more that wait. Its
    /// server has responded before.
    private func sending(_ settings: Scheduler.Settings) -> Scheduler {
        var scheduler = Scheduler(settings: settings, seed: 1)
        _ = scheduler.handle(.rows(lane(1), due: now), now: .zero)
        scheduler.slots.setStanding(.prompt, of: lane(1).origin)
        answer(scheduler.handle(.wake, now: now), &scheduler)
        return scheduler
    }

    /// Ends a request of a lane. Returns the lanes whose requests start then.
    private func finish(_ lane: Int64, _ scheduler: inout Scheduler) -> [Int64] {
        _ = scheduler.conclude(lane: lane, epoch: 0, effect: .healthy, failures: 1, now: now)
        if let next = scheduler.claimNext(lane: lane, after: .healthy, now: now) {
            _ = scheduler.handle(.nextClaimed(lane: lane, taken: 1, due: .zero), now: now)
            return [next.lane]
        }
        let settled = scheduler.handle(.settled(lane: lane, due: nil, isDistrusted: false), now: now)
        return answer(settled, &scheduler).map(\.lane)
    }

    @Test func `a lower number lets requests in flight finish, and starts others only below it`() {
        for number in numbers {
            var settings = unlimited
            settings[keyPath: number] = 4
            var scheduler = sending(settings)
            #expect(scheduler.inflight == 4)
            settings[keyPath: number] = 2
            #expect(scheduler.handle(.settings(settings), now: now).isEmpty)
            #expect(scheduler.inflight == 4)
            let started = (0..<4).map { _ in finish(1, &scheduler) }
            #expect(started == [[], [], [1], [1]])
            #expect(scheduler.inflight == 2)
        }
    }

    @Test func `a higher number starts waiting requests at once`() {
        for number in numbers {
            var settings = unlimited
            settings[keyPath: number] = 2
            var scheduler = sending(settings)
            settings[keyPath: number] = 5
            #expect(claims(scheduler.handle(.settings(settings), now: now)).map(\.limit) == [3])
            #expect(scheduler.inflight == 5)
        }
    }

    @Test func `while more requests are in flight than a lower number permits, no reserved slot is used`() {
        var settings = unlimited
        (settings.inflight, settings.reservedShare) = (8, 4)
        var scheduler = sending(settings)
        #expect(scheduler.inflight == 6)
        settings.inflight = 4
        answer(scheduler.handle(.settings(settings), now: now), &scheduler)
        #expect(claims(scheduler.handle(.rows(lane(2, "b"), due: .zero), now: now)).isEmpty)
        let started = (0..<3).map { _ in finish(1, &scheduler) }
        #expect(started == [[], [], [2]])
        #expect(scheduler.inflight == 4)
    }

    @Test(arguments: [true, false])
    func `new weights apply to lanes and hosts that wait already`(isOfHosts: Bool) {
        var settings = unlimited
        settings.inflight = 1
        var scheduler = sending(settings)
        let other = isOfHosts ? lane(2, "b") : lane(2, "a", "b")
        _ = scheduler.handle(.rows(other, due: .zero), now: now)
        if isOfHosts { settings.hostWeights = ["b": 3] } else { settings.laneWeights = ["b": 3] }
        _ = scheduler.handle(.settings(settings), now: now)
        var (current, turns) = (Int64(1), [Int64: Int]())
        for _ in 0..<40 {
            current = finish(current, &scheduler).first ?? current
            turns[current, default: 0] += 1
        }
        #expect((27...33).contains(turns[2] ?? 0), "\(turns)")
    }

    @Test(arguments: ["a", nil])
    func `a new rate determines when waiting requests start, and a removed one starts them at once`(
        host: String?
    ) throws {
        var settings = unlimited
        settings.rates = [try RateLimit(0.25, to: host, burst: 1)]
        var scheduler = sending(settings)
        #expect(scheduler.inflight == 1)
        #expect(scheduler.nextWake(now: now) == .seconds(5))
        settings.rates = [try RateLimit(0.5, to: host, burst: 1)]
        #expect(scheduler.handle(.settings(settings), now: now).isEmpty)
        #expect(scheduler.nextWake(now: now) == .seconds(3))
        #expect(scheduler.waitReason(ofLane: 1, now: now) == .rateLimited)
        settings.rates = []
        #expect(claims(scheduler.handle(.settings(settings), now: now)).map(\.limit) == [99])
    }

    @Test func `a new backoff applies to the next delay`() {
        var settings = unlimited
        var scheduler = sending(settings)
        settings.backoff = Backoff(base: .seconds(10), cap: .seconds(10))
        _ = scheduler.handle(.settings(settings), now: now)
        let settlement = scheduler.conclude(lane: 1, epoch: 0, effect: .failure, failures: 1, now: now)
        #expect(settlement.due == .seconds(11))
    }

    @Test func `a new maximum of the backoff determines when an unreachable host is tried`() {
        var settings = unlimited
        var scheduler = Scheduler(settings: settings, seed: 1)
        _ = scheduler.handle(.rows(lane(1), due: now), now: .zero)
        _ = scheduler.handle(.gate(.https("a"), .notReachable), now: .zero)
        #expect(scheduler.nextWake(now: now) == settings.backoff.cap)
        settings.backoff = Backoff(base: .seconds(2), cap: .seconds(60))
        _ = scheduler.handle(.settings(settings), now: now)
        #expect(scheduler.nextWake(now: now) == .seconds(60))
    }
}
