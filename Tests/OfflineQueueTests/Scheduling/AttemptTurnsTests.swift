internal import Testing

@testable internal import OfflineQueue

/// Attempts to hosts that do not answer have a common limit.
@Suite struct AttemptTurnsTests {
    /// Hosts that refuse connections, and the host `returning`, which responds from 100 s on.
    struct Hosts: SimulatedNetwork {
        private(set) var attempts: [Moment] = []
        private(set) var delivered: [Moment] = []

        mutating func reply(to arrival: FleetArrival) -> (effect: LaneEffect, after: Duration) {
            if arrival.lane.origin.host == "returning", arrival.at >= .seconds(100) {
                return (.healthy, .milliseconds(50))
            }
            attempts.append(arrival.at)
            return (.close, .milliseconds(1))
        }

        mutating func ended(_ arrival: FleetArrival, _ effect: LaneEffect, now: Moment) {
            if effect == .healthy { delivered.append(now) }
        }
    }

    private func lane(_ id: Int64, _ host: String, submitter: UInt32) -> Scheduler.LaneInfo {
        let origin = Origin(scheme: "https", host: host, port: 443)
        return Scheduler.LaneInfo(id: id, key: LaneKey(origin: origin, submitter: submitter))
    }

    /// Returns a queue with a request to each of the hosts of the user 1, and the lane 0 of the user 2.
    private func fleet(hosts: Int) -> FleetSimulation<Hosts> {
        var fleet = FleetSimulation(Hosts())
        let dead = (1...hosts).map { lane(Int64($0), "dead\($0)", submitter: 1) }
        fleet.addQueue(
            Scheduler.Settings(),
            seed: 1,
            lanes: [lane(0, "returning", submitter: 2)] + dead,
            gate: .reachable(generation: 1)
        )
        for lane in dead { fleet.enqueue(lane: lane.id, at: .zero) }
        return fleet
    }

    @Test func `a thousand hosts that refuse connections are tried three times per second`() {
        var fleet = fleet(hosts: 1000)
        fleet.run(until: .seconds(900))
        let settings = Scheduler.Settings()
        let limit = 1000 + settings.unansweredBurst + Int(settings.unansweredRate * 900)
        let attempts = fleet.network.attempts.count
        // With its backoff alone, each host would be tried about nine times.
        #expect(attempts <= limit && attempts > limit - 100, "\(attempts) attempts, limit \(limit)")
    }

    @Test func `the host of another user does not wait for three thousand hosts that do not answer`() throws {
        var fleet = fleet(hosts: 3000)
        fleet.enqueue(lane: 0, at: .seconds(10))
        fleet.run(until: .seconds(500))
        // The delay after the seventh failure is at most 256 s. With one line for all users, the first retry would
        // come after 1000 s.
        let delivered = try #require(fleet.network.delivered.first)
        #expect(delivered <= .seconds(400), "\(delivered)")
    }

    /// Servers that accept no connection, except `returning`, which responds.
    struct SilentHosts: SimulatedNetwork {
        private(set) var delivered: [Moment] = []

        mutating func reply(to arrival: FleetArrival) -> (effect: LaneEffect, after: Duration) {
            arrival.lane.origin.host == "returning" ? (.healthy, .milliseconds(50)) : (.close, .seconds(15))
        }

        mutating func ended(_ arrival: FleetArrival, _ effect: LaneEffect, now: Moment) {
            if effect == .healthy { delivered.append(now) }
        }
    }

    @Test func `a new host of another user does not wait for all hosts that are silent`() throws {
        var fleet = FleetSimulation(SilentHosts())
        let dead = (1...1000).map { lane($0, "dead\($0)", submitter: 1) }
        let lanes = [lane(0, "returning", submitter: 2)] + dead
        fleet.addQueue(Scheduler.Settings(), seed: 1, lanes: lanes, gate: .reachable(generation: 1))
        for lane in dead { fleet.enqueue(lane: lane.id, at: .zero) }
        fleet.enqueue(lane: 0, at: .seconds(10))
        fleet.run(until: .seconds(120))
        // All slots for new origins are in use, and the first of them is free after 15 s.
        #expect(try #require(fleet.network.delivered.first) < .seconds(26))
    }

    @Test func `a path that returns ends the wait for a turn`() {
        var fleet = fleet(hosts: 100)
        fleet.run(until: .seconds(10))
        let before = fleet.network.attempts.count
        fleet.turn(.notReachable, at: .seconds(11))
        fleet.turn(.reachable(generation: 2), at: .seconds(12))
        fleet.run(until: .seconds(13))
        #expect(fleet.network.attempts.count >= before + 100)
    }

    @Test func `few hosts need no turns`() {
        var fleet = fleet(hosts: 60)
        fleet.run(until: .seconds(10))
        // With turns, there would be 60 first attempts, 32 at once after them, and three per second.
        #expect(fleet.network.attempts.count > 60 + 32 + 30)
    }

    @Test func `a lane that waits for its turn reports a reason, and a flush ends the wait`() {
        var settings = Scheduler.Settings()
        settings.gateTimeout = .zero
        settings.backoff = Backoff(base: .seconds(2), cap: .seconds(2))
        (settings.turnsFromEndpoints, settings.unansweredRate, settings.unansweredBurst) = (0, 1, 1)
        var scheduler = Scheduler(settings: settings, seed: 1)
        let lanes = [lane(1, "a", submitter: 1), lane(2, "b", submitter: 1)]
        let attempts = lanes.flatMap { claims(scheduler.handle(.rows($0, due: .zero), now: .zero)) }
        for claim in attempts {
            _ = scheduler.handle(.claimed(lane: claim.lane, taken: 1, due: nil), now: .zero)
        }
        for claim in attempts {
            let settlement = scheduler.conclude(
                lane: claim.lane,
                epoch: claim.epoch,
                effect: .close,
                failures: 1,
                now: .seconds(1)
            )
            let event = Scheduler.Event.settled(lane: claim.lane, due: settlement.due, isDistrusted: false)
            _ = scheduler.handle(event, now: .seconds(1))
        }
        let first = claims(scheduler.handle(.wake, now: .seconds(3))).map(\.lane)
        let reason = scheduler.waitReason(ofLane: 2, now: .seconds(3))
        #expect(first == [1] && reason == .laneClosed)
        #expect(scheduler.nextWake(now: .seconds(3)) == .seconds(4))
        var flushed = scheduler
        #expect(claims(flushed.handle(.flush(.all), now: .seconds(3))).map(\.lane) == [2])
        #expect(claims(scheduler.handle(.wake, now: .seconds(4))).map(\.lane) == [2])
    }

    private func claims(_ actions: [Scheduler.Action]) -> [Scheduler.Claim] {
        actions.compactMap { if case .claim(let claim) = $0 { claim } else { nil } }
    }

    @Test func `the groups of lanes take turns, and a lane that is removed takes none`() {
        var turns = AttemptTurns(perSecond: 10, burst: 4)
        let busy = AttemptTurns.Group(submitter: 1, hasResponded: false)
        for lane in 1...1000 as ClosedRange<Int64> { turns.add(lane, to: busy) }
        turns.add(2000, to: AttemptTurns.Group(submitter: 2, hasResponded: false))
        turns.add(3000, to: AttemptTurns.Group(submitter: 1, hasResponded: true))
        turns.remove(1)
        turns.add(3, to: AttemptTurns.Group(submitter: 1, hasResponded: true))
        var order: [Int64] = []
        while let lane = turns.takeNext(now: .seconds(1)) { order.append(lane) }
        #expect(order == [2, 2000, 3000, 4])
        #expect(turns.opensAt == .milliseconds(1100))
        #expect(turns.contains(3) && !turns.contains(1) && turns.count == 997)
    }
}
