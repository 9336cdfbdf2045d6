internal import Testing

@testable internal import OfflineQueue

/// Servers that do not respond must not delay requests to the others, however many there are.
@Suite struct SilentHostTests {
    /// A network in which some hosts respond after 50 ms, and the attempts to the others end with a timeout.
    struct Servers: SimulatedNetwork {
        let timeout: Duration
        private(set) var delivered: [String: [Moment]] = [:]
        private(set) var silentInFlight = 0
        private(set) var mostSilent = 0

        mutating func reply(to arrival: FleetArrival) -> (effect: LaneEffect, after: Duration) {
            guard arrival.lane.origin.host.hasPrefix("silent") else { return (.healthy, .milliseconds(50)) }
            silentInFlight += 1
            mostSilent = max(mostSilent, silentInFlight)
            return (.failure, timeout)
        }

        mutating func ended(_ arrival: FleetArrival, _ effect: LaneEffect, now: Moment) {
            if effect == .healthy {
                delivered[arrival.lane.origin.host, default: []].append(now)
            } else {
                silentInFlight -= 1
            }
        }
    }

    private func lane(_ id: Int64, _ host: String) -> Scheduler.LaneInfo {
        let origin = Origin(scheme: "https", host: host, port: 443)
        return Scheduler.LaneInfo(id: id, origin: origin, mode: .parallel)
    }

    /// Returns a queue with 20 requests to each of the silent hosts, and the lanes 1 and 2 to two hosts that respond.
    ///
    /// - Parameter start: When the requests to the silent hosts are enqueued.
    private func fleet(silent: Int, timeout: Duration, start: Moment = .zero) -> FleetSimulation<Servers> {
        var fleet = FleetSimulation(Servers(timeout: timeout))
        let dead = (0..<silent).map { lane(Int64(100 + $0), "silent\($0)") }
        let lanes = [lane(1, "a"), lane(2, "b")] + dead
        fleet.addQueue(Scheduler.Settings(), seed: 1, lanes: lanes, gate: .reachable(generation: 1))
        for lane in dead { fleet.enqueue(20, lane: lane.id, at: start) }
        return fleet
    }

    @Test(arguments: [20, 24, 200], [Duration.seconds(15), .seconds(300)])
    func `a host that has responded keeps its full share, whatever number of hosts is silent`(
        silent: Int,
        timeout: Duration
    ) throws {
        var fleet = fleet(silent: silent, timeout: timeout, start: .seconds(1))
        fleet.enqueue(1, lane: 1, at: .zero)
        // By then, the silent hosts have had all slots that they can get.
        for start in [Moment.seconds(1000), .seconds(5000)] { fleet.enqueue(800, lane: 1, at: start) }
        fleet.run(until: .seconds(4000))
        let first = fleet.network.delivered["a"] ?? []
        try #require(first.count == 801)
        // 800 requests of 50 ms each in eight slots take 5 s.
        #expect(first.last! <= .milliseconds(1_005_500), "\(first.last!)")
        fleet.run(until: .seconds(5006))
        #expect(fleet.network.delivered["a"]?.count == 1601)
    }

    @Test(arguments: [Duration.seconds(15), .seconds(300)])
    func `hosts that respond share the slots while 200 hosts are silent`(timeout: Duration) {
        var fleet = fleet(silent: 200, timeout: timeout, start: .seconds(1))
        for lane in [1, 2] as [Int64] {
            fleet.enqueue(1, lane: lane, at: .zero)
            fleet.enqueue(800, lane: lane, at: .seconds(1000))
        }
        fleet.run(until: .seconds(1012))
        #expect(fleet.network.delivered.mapValues(\.count) == ["a": 801, "b": 801])
    }

    @Test(arguments: [0, 16])
    func `a host that is new gets its full share at once, next to 16 silent hosts that are new`(silent: Int)
        throws
    {
        var fleet = fleet(silent: silent, timeout: .seconds(300))
        fleet.enqueue(800, lane: 1, at: .milliseconds(1))
        fleet.run(until: .seconds(10))
        let delivered = try #require(fleet.network.delivered["a"])
        #expect(delivered.count == 800)
        #expect(delivered.last! <= .milliseconds(5500), "\(delivered.last!)")
    }

    @Test(arguments: [
        (OriginStanding.prompt, OriginStanding.prompt), (.slow, .new), (.silent, .new), (.new, .new),
    ])
    func `a flush forgets failures, but not that an origin is prompt`(
        before: OriginStanding,
        after: OriginStanding
    ) {
        var slots = OriginSlots(limits: OriginSlots.Limits(total: 32, perOrigin: 8, reserved: 8))
        let origin = lane(1, "a").origin
        slots.open(laneOf: origin)
        slots.setStanding(before, of: origin)
        slots.forgetFailures(of: origin)
        #expect(slots.standing(of: origin) == after)
    }

    @Test func `failures of attempts that were in flight together count once`() {
        var slots = OriginSlots(limits: OriginSlots.Limits(total: 32, perOrigin: 8, reserved: 8))
        let origin = lane(1, "a").origin
        slots.open(laneOf: origin)
        slots.advance(to: .seconds(20))
        slots.setStanding(.slow, of: origin)
        slots.advance(to: .seconds(30))
        #expect(
            !slots.isAfterStandingChange(
                AttemptCourse(duration: .seconds(15), isTimeout: true),
                about: origin
            )
        )
        #expect(
            slots.isAfterStandingChange(AttemptCourse(duration: .seconds(10), isTimeout: true), about: origin)
        )
    }

    @Test
    func `after a short failure of all servers, those that respond do not wait for 20 that stay silent`()
        throws
    {
        var fleet = FleetSimulation(FailingUplink())
        let silent = (0..<20).map { lane(Int64(100 + $0), "silent\($0)") }
        let healthy = (0..<5).map { lane(Int64($0), "healthy\($0)") }
        fleet.addQueue(
            Scheduler.Settings(),
            seed: 1,
            lanes: silent + healthy,
            gate: .reachable(generation: 1)
        )
        for lane in silent { fleet.enqueue(20, lane: lane.id, at: .zero) }
        for lane in healthy { fleet.enqueue(1, lane: lane.id, at: .zero) }
        // These fail once, for 3 s, and are sent again after the backoff.
        for lane in healthy { fleet.enqueue(8, lane: lane.id, at: .seconds(1000)) }
        fleet.run(until: .seconds(1030))
        for lane in healthy {
            #expect(fleet.network.delivered[lane.origin.host]?.count == 9, "\(lane.origin.host)")
        }
    }

    /// Silent servers, and others to which no path exists for 3 s. The kernel does not report that.
    struct FailingUplink: SimulatedNetwork {
        private(set) var delivered: [String: [Moment]] = [:]

        mutating func reply(to arrival: FleetArrival) -> (effect: LaneEffect, after: Duration) {
            if arrival.lane.origin.host.hasPrefix("silent") { return (.failure, .seconds(300)) }
            let isDown = arrival.at >= .seconds(1000) && arrival.at < .seconds(1003)
            return isDown ? (.failure, .seconds(3)) : (.healthy, .milliseconds(50))
        }

        mutating func ended(_ arrival: FleetArrival, _ effect: LaneEffect, now: Moment) {
            if effect == .healthy { delivered[arrival.lane.origin.host, default: []].append(now) }
        }
    }

    @Test func `silent hosts are still tried, and deliver everything when they respond`() {
        var fleet = FleetSimulation(RecoveringServers())
        let lanes = (0..<60).map { lane(Int64($0), "host\($0)") }
        fleet.addQueue(Scheduler.Settings(), seed: 1, lanes: lanes, gate: .reachable(generation: 1))
        for lane in lanes { fleet.enqueue(20, lane: lane.id, at: .zero) }
        fleet.run(until: .seconds(100_000))
        #expect(fleet.unfinished == 0 && fleet.network.failures > 0)
    }

    /// Servers that are silent for the first hour.
    struct RecoveringServers: SimulatedNetwork {
        private(set) var failures = 0

        mutating func reply(to arrival: FleetArrival) -> (effect: LaneEffect, after: Duration) {
            guard arrival.at < .seconds(3600) else { return (.healthy, .milliseconds(50)) }
            failures += 1
            return (.failure, .seconds(300))
        }

        mutating func ended(_ arrival: FleetArrival, _ effect: LaneEffect, now: Moment) {}
    }

    @Test(
        arguments: [
            (.new, AttemptCourse(duration: .milliseconds(10), hasResponse: true), .prompt),
            (.silent, AttemptCourse(duration: .seconds(9), hasResponse: true), .prompt),
            (.prompt, AttemptCourse(duration: .seconds(10), hasResponse: true), .slow),
            (.prompt, AttemptCourse(duration: .seconds(1)), .doubtful(failures: 1)),
            (.slow, AttemptCourse(duration: .seconds(1)), .doubtful(failures: 1)),
            (.doubtful(failures: 1), AttemptCourse(duration: .milliseconds(5)), .doubtful(failures: 1)),
            (.doubtful(failures: 3), AttemptCourse(duration: .seconds(1)), .doubtful(failures: 4)),
            (.doubtful(failures: 4), AttemptCourse(duration: .seconds(1)), .silent),
            (.doubtful(failures: 4), AttemptCourse(duration: .seconds(9), hasResponse: true), .prompt),
            (.new, AttemptCourse(duration: .seconds(1)), .silent),
            (.new, AttemptCourse(duration: .milliseconds(500), isTimeout: true), .silent),
            (.prompt, AttemptCourse(duration: .milliseconds(5)), .prompt),
            (.silent, AttemptCourse(duration: .milliseconds(5)), .new),
            (.slow, AttemptCourse(duration: .milliseconds(5)), .slow),
        ] as [(OriginStanding, AttemptCourse, OriginStanding)]
    )
    func `a failure makes a host silent only if it kept its slot busy`(
        before: OriginStanding,
        course: AttemptCourse,
        after: OriginStanding
    ) {
        #expect(before.after(course, Scheduler.Settings()) == after)
    }

    @Test func `the standing of a host is remembered while it has no requests, for the last 512 hosts`() {
        func origin(_ number: Int) -> Origin { Origin(scheme: "https", host: "\(number)", port: 443) }
        var recent = RecentStandings()
        for number in 0..<2000 { recent.remember(.prompt, of: origin(number)) }
        recent.remember(.silent, of: origin(1999))
        #expect(recent.take(origin(1999)) == .silent)
        #expect(recent.take(origin(1999)) == .new, "it was taken")
        #expect((1500..<1999).allSatisfy { recent.take(origin($0)) == .prompt })
        #expect(recent.take(origin(0)) == .new)
    }

    // MARK: - Outages of this machine's own network

    private static let up = GateState.reachable(generation: 1, route: 1)

    /// Returns a scheduler with the lane 1 to the host `a`, from which one request is in flight, and the lane 2 to `b`.
    private func sending() -> (Scheduler, Scheduler.Claim) {
        var scheduler = Scheduler(seed: 1)
        for (id, host) in [(2, "b"), (1, "a")] as [(Int64, String)] {
            _ = scheduler.handle(.rows(lane(id, host), due: .zero), now: .zero)
        }
        _ = scheduler.handle(.gate(.https("b"), Self.up), now: .zero)
        let actions = scheduler.handle(.gate(.https("a"), Self.up), now: .zero)
        guard case .claim(let claim)? = actions.first else { fatalError("no claim: \(actions)") }
        _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: nil), now: .zero)
        return (scheduler, claim)
    }

    /// Ends the attempt with a timeout after 15 s. The request is not repeated, so its lane is removed.
    private func timeOut(_ claim: Scheduler.Claim, in scheduler: inout Scheduler) {
        let course = AttemptCourse(duration: .seconds(15), isTimeout: true)
        conclude(claim, .failure, course, in: &scheduler, now: .seconds(15))
        _ = scheduler.handle(.settled(lane: 1, due: nil, isDistrusted: false), now: .seconds(15))
    }

    private func conclude(
        _ claim: Scheduler.Claim,
        _ effect: LaneEffect,
        _ course: AttemptCourse,
        in scheduler: inout Scheduler,
        now: Moment
    ) {
        _ = scheduler.conclude(
            lane: 1,
            epoch: claim.epoch,
            effect: effect,
            failures: 1,
            course: course,
            now: now
        )
    }

    /// Returns the standing that the host `a` has when it gets another request.
    private func standingOfNext(_ scheduler: inout Scheduler) -> OriginStanding {
        _ = scheduler.handle(.rows(lane(1, "a"), due: .seconds(100)), now: .seconds(100))
        return scheduler.slots.standing(of: lane(1, "a").origin)
    }

    @Test(
        arguments: [
            ([], .silent), ([.flush(.all)], .new),
            ([.gate(.https("b"), .notReachable), .gate(.https("b"), up)], .new),
            ([.gate(.https("b"), .reachable(generation: 2, route: 2))], .new),
        ] as [([Scheduler.Event], OriginStanding)]
    )
    func `failures of a host without requests are forgotten when any path returns or changes`(
        events: [Scheduler.Event],
        standing: OriginStanding
    ) {
        var (scheduler, claim) = sending()
        timeOut(claim, in: &scheduler)
        for event in events { _ = scheduler.handle(event, now: .seconds(20)) }
        #expect(standingOfNext(&scheduler) == standing)
    }

    @Test func `failures of a host without a path are forgotten with its last lane`() {
        var (scheduler, claim) = sending()
        _ = scheduler.handle(.gate(.https("a"), .notReachable), now: .seconds(14))
        timeOut(claim, in: &scheduler)
        #expect(scheduler.gateState(of: .https("a")) == nil, "the host is no longer watched")
        #expect(standingOfNext(&scheduler) == .new)
    }

    @Test(arguments: [(Duration.seconds(20), OriginStanding.new), (.seconds(9), .prompt)])
    func `a response that an outage has delayed does not make its host slow`(
        duration: Duration,
        standing: OriginStanding
    ) {
        var (scheduler, claim) = sending()
        _ = scheduler.handle(.gate(.https("a"), .notReachable), now: .seconds(1))
        _ = scheduler.handle(.gate(.https("a"), .reachable(generation: 2, route: 1)), now: .seconds(2))
        let course = AttemptCourse(duration: duration, hasResponse: true)
        conclude(claim, .healthy, course, in: &scheduler, now: duration)
        #expect(scheduler.slots.standing(of: lane(1, "a").origin) == standing)
    }

    @Test func `remembered failures are forgotten, and prompt hosts are not`() {
        var recent = RecentStandings()
        let origins = ["prompt", "slow", "later"].map { lane(1, $0).origin }
        recent.remember(.prompt, of: origins[0])
        recent.remember(.slow, of: origins[1])
        recent.forgetFailures()
        recent.remember(.silent, of: origins[2])
        #expect(origins.map { recent.take($0) } == [.prompt, .new, .silent])
    }

    @Test func `the remembered failures of one host are forgotten, and those of others are not`() {
        var recent = RecentStandings()
        let origins = ["a", "b"].map { lane(1, $0).origin }
        for origin in origins { recent.remember(.silent, of: origin) }
        recent.forgetFailures { $0 == origins[0] }
        #expect(origins.map { recent.take($0) } == [.new, .silent])
    }
}
