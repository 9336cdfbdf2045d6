internal import Testing

@testable internal import OfflineQueue

/// What a queue sends when its hosts become reachable again.
@Suite struct ReconnectTests {
    private let up = GateState.reachable(generation: 2, route: 1)

    private func claims(_ actions: [Scheduler.Action]) -> [Scheduler.Claim] {
        actions.compactMap { if case .claim(let claim) = $0 { claim } else { nil } }
    }

    /// Returns a scheduler with the given number of hosts `0`, `1`, …. Each has a lane of the same number with many due
    /// requests, and no path.
    private func offline(
        hosts: Int64 = 1,
        _ adjust: (inout Scheduler.Settings) -> Void = { _ in }
    ) -> Scheduler {
        var settings = Scheduler.Settings()
        adjust(&settings)
        var scheduler = Scheduler(settings: settings, seed: 1)
        for id in 0..<hosts {
            let lane = Scheduler.LaneInfo(id: id, host: "\(id)", mode: .parallel)
            _ = scheduler.handle(.rows(lane, due: .zero), now: .zero)
            _ = scheduler.handle(.gate(.https("\(id)"), .notReachable), now: .zero)
        }
        return scheduler
    }

    /// Reports that a claim was executed and found more requests than it could take. Returns the next claims.
    private func execute(
        _ claim: Scheduler.Claim,
        _ scheduler: inout Scheduler,
        now: Moment
    ) -> [Scheduler.Claim] {
        claims(scheduler.handle(.claimed(lane: claim.lane, taken: claim.limit, due: .zero), now: now))
    }

    /// Concludes an attempt of a lane as successful. Returns the number of attempts that start.
    private func succeed(_ lane: Int64, _ scheduler: inout Scheduler, now: Moment) -> Int {
        _ = scheduler.conclude(lane: lane, epoch: 1, effect: .healthy, failures: 1, now: now)
        if scheduler.claimNext(lane: lane, after: .healthy, now: now) != nil {
            _ = scheduler.handle(.nextClaimed(lane: lane, taken: 1, due: .zero), now: now)
            return 1
        }
        var started = 0
        let settled = Scheduler.Event.settled(lane: lane, due: nil, isDistrusted: false)
        for claim in claims(scheduler.handle(settled, now: now)) {
            started += claim.limit
            #expect(execute(claim, &scheduler, now: now).isEmpty)
        }
        return started
    }

    /// A name that could not be looked up during the outage is unknown until its lookup ends.
    @Test func `after an outage a lane of an unknown host sends one request, after the spread`() {
        var scheduler = offline { $0.reconnectSpread = .seconds(10) }
        #expect(claims(scheduler.handle(.gate(.https("0"), .unknown), now: .seconds(60))).isEmpty)
        #expect(scheduler.waitReason(ofLane: 0, now: .seconds(60)) == .paced)
        let isReconnecting = scheduler.isReconnecting(lane: 0, isPathError: true, now: .seconds(61))
        #expect(isReconnecting)
        let canary = claims(scheduler.handle(.wake, now: .seconds(71)))
        #expect(canary.map(\.limit) == [1])
    }

    /// Fails an attempt while the state of its host is unknown, and then finds the path. Returns what starts, and whether
    /// failures to connect are retried fast.
    private func firstPath(isUnresolved: Bool) -> (claims: [Scheduler.Claim], isReconnecting: Bool) {
        let lane = Scheduler.LaneInfo(id: 0, host: "0", mode: .parallel)
        var scheduler = Scheduler(seed: 1)
        _ = scheduler.handle(.rows(lane, due: .zero), now: .zero)
        let attempt = claims(scheduler.handle(.gate(.https("0"), .unknown), now: .zero))
        #expect(attempt.map(\.limit) == [8])
        _ = scheduler.handle(.claimed(lane: 0, taken: 1, due: nil), now: .zero)
        let course = AttemptCourse(isUnresolved: isUnresolved)
        let due = scheduler.conclude(
            lane: 0,
            epoch: attempt[0].epoch,
            effect: .close,
            failures: 1,
            course: course,
            now: .zero
        ).due
        _ = scheduler.handle(.settled(lane: 0, due: due, isDistrusted: false), now: .zero)
        let found = claims(scheduler.handle(.gate(.https("0"), up), now: .milliseconds(10)))
        let isReconnecting = scheduler.isReconnecting(
            lane: 0,
            isPathError: false,
            now: .milliseconds(20)
        )
        return (found, isReconnecting)
    }

    /// The lookup of an attempt finds the address of a name before the monitor does. Three thousand hosts that refused the
    /// connection would otherwise all be tried again, and then seven times in five seconds.
    @Test func `the first path to a host that refused a connection ends no backoff`() {
        let first = firstPath(isUnresolved: false)
        #expect(first.claims.isEmpty && !first.isReconnecting)
    }

    @Test func `the first path to a host whose name could not be looked up ends the backoff`() {
        let first = firstPath(isUnresolved: true)
        #expect(first.claims.map(\.limit) == [1] && first.isReconnecting)
    }

    @Test func `after an outage a lane sends one request at once, and more when it has succeeded`() {
        var scheduler = offline()
        let canary = claims(scheduler.handle(.gate(.https("0"), up), now: .seconds(60)))
        #expect(canary.map(\.limit) == [1] && canary.first?.retries == nil)
        #expect(execute(canary[0], &scheduler, now: .seconds(60)).isEmpty)
        #expect(succeed(0, &scheduler, now: .seconds(61)) == 4, "the ramp starts at 4")
        #expect(scheduler.inflight == 4)
    }

    @Test func `the ramp doubles with each round of successes, up to the limit of the origin`() {
        var scheduler = offline()
        let canary = claims(scheduler.handle(.gate(.https("0"), up), now: .seconds(60)))
        _ = execute(canary[0], &scheduler, now: .seconds(60))
        var levels: [Int] = []
        for _ in 0..<12 {
            _ = succeed(0, &scheduler, now: .seconds(61))
            levels.append(scheduler.inflight)
        }
        #expect(levels == [4, 4, 4, 8, 8, 8, 8, 8, 8, 8, 8, 8])
    }

    @Test func `every host gets its canary, and all of them share the ramp`() {
        var scheduler = offline(hosts: 10)
        var canaries: [Scheduler.Claim] = []
        for host in 0..<10 {
            canaries += claims(scheduler.handle(.gate(.https("\(host)"), up), now: .seconds(60)))
        }
        #expect(canaries.map(\.limit) == Array(repeating: 1, count: 10), "no host waits for another one")
        for canary in canaries { _ = execute(canary, &scheduler, now: .seconds(60)) }
        let started = (0..<3 as Range<Int64>).map { succeed($0, &scheduler, now: .seconds(61)) }
        #expect(started == [4, 1, 1], "4 are in flight, so further hosts send one at a time")
    }

    @Test(arguments: [1, 3] as [Int64])
    func `dead hosts do not slow down a healthy one, however many lanes they have`(lanes: Int64) {
        var settings = Scheduler.Settings()
        settings.inflight = 64
        var scheduler = Scheduler(settings: settings, seed: 1)
        for id in 0...(20 * lanes) {
            let lane = Scheduler.LaneInfo(id: id, host: "\((id + lanes - 1) / lanes)", mode: .parallel)
            _ = scheduler.handle(.rows(lane, due: .zero), now: .zero)
        }
        for host in 0...20 { _ = scheduler.handle(.gate(.https("\(host)"), .notReachable), now: .zero) }
        var granted = 0
        for host in 0...20 {
            for claim in claims(scheduler.handle(.gate(.https("\(host)"), up), now: .seconds(60))) {
                granted += execute(claim, &scheduler, now: .seconds(60)).count + claim.limit
            }
        }
        #expect(granted == (lanes == 1 ? 21 : 24), "one for each host, and 3 more")
        var levels: [Int] = []
        for _ in 0..<12 {
            let before = scheduler.inflight
            let started = succeed(0, &scheduler, now: .seconds(61))
            levels.append(scheduler.inflight - granted + 1)
            #expect(scheduler.inflight == before - 1 + started)
        }
        #expect(levels.last == 8, "\(levels)")
    }

    @Test func `a success over the old path does not end the wait for the canary`() {
        var scheduler = Scheduler(seed: 1)
        let lane = Scheduler.LaneInfo(id: 0, host: "0", mode: .parallel)
        _ = scheduler.handle(.rows(lane, due: .zero), now: .zero)
        let old = claims(scheduler.handle(.gate(.https("0"), up), now: .zero))[0]
        _ = scheduler.handle(.claimed(lane: 0, taken: 2, due: .zero), now: .zero)
        _ = scheduler.handle(.claimed(lane: 0, taken: 0, due: .seconds(5)), now: .zero)
        _ = scheduler.handle(.gate(.https("0"), .notReachable), now: .seconds(10))
        let found = scheduler.handle(
            .gate(.https("0"), .reachable(generation: 3, route: 2)),
            now: .seconds(12)
        )
        let canary = claims(found)
        #expect(canary.map(\.limit) == [1])
        _ = execute(canary[0], &scheduler, now: .seconds(12))
        _ = scheduler.conclude(lane: 0, epoch: old.epoch, effect: .healthy, failures: 1, now: .seconds(13))
        #expect(scheduler.claimNext(lane: 0, after: .healthy, now: .seconds(13)) == nil)
        let settled = Scheduler.Event.settled(lane: 0, due: nil, isDistrusted: false)
        #expect(claims(scheduler.handle(settled, now: .seconds(13))).isEmpty)
        #expect(scheduler.inflight == 2, "one from before the outage, and the canary")
        _ = scheduler.conclude(
            lane: 0,
            epoch: canary[0].epoch,
            effect: .healthy,
            failures: 1,
            now: .seconds(14)
        )
        #expect(
            claims(scheduler.handle(settled, now: .seconds(14))).map(\.limit) == [3],
            "4 with the older one"
        )
    }

    @Test func `a claim that finds no request is no canary`() {
        var scheduler = offline()
        let canary = claims(scheduler.handle(.gate(.https("0"), up), now: .seconds(60)))
        #expect(canary.map(\.limit) == [1])
        _ = scheduler.handle(.claimed(lane: 0, taken: 0, due: .seconds(90)), now: .seconds(60))
        #expect(scheduler.nextWake(now: .seconds(60)) == .seconds(90))
        let later = claims(scheduler.handle(.wake, now: .seconds(90)))
        #expect(later.map(\.limit) == [1])
    }

    @Test func `a host that becomes reachable again does not slow down other hosts`() {
        var scheduler = offline(hosts: 2)
        let first = claims(scheduler.handle(.gate(.https("0"), up), now: .seconds(60)))
        _ = execute(first[0], &scheduler, now: .seconds(60))
        while scheduler.inflight < 8 { _ = succeed(0, &scheduler, now: .seconds(61)) }
        // The ramp of the first host is over after its time.
        _ = scheduler.handle(.wake, now: .seconds(100))
        let second = claims(scheduler.handle(.gate(.https("1"), up), now: .seconds(200)))
        #expect(second.map(\.limit) == [1])
        _ = execute(second[0], &scheduler, now: .seconds(200))
        #expect(succeed(0, &scheduler, now: .seconds(201)) == 1 && scheduler.inflight == 9)
    }

    @Test func `slow requests do not keep the ramp low for more than 30 s`() {
        var scheduler = offline()
        let canary = claims(scheduler.handle(.gate(.https("0"), up), now: .seconds(60)))
        _ = execute(canary[0], &scheduler, now: .seconds(60))
        #expect(succeed(0, &scheduler, now: .seconds(61)) == 4)
        #expect(scheduler.nextWake(now: .seconds(61)) == .seconds(90))
        let more = claims(scheduler.handle(.wake, now: .seconds(90)))
        #expect(more.map(\.limit) == [4])
    }

    @Test func `a long upload as canary does not block its lane for more than 20 s`() {
        var scheduler = offline()
        let canary = claims(scheduler.handle(.gate(.https("0"), up), now: .seconds(60)))
        _ = execute(canary[0], &scheduler, now: .seconds(60))
        #expect(scheduler.nextWake(now: .seconds(61)) == .seconds(80))
        let more = claims(scheduler.handle(.wake, now: .seconds(80)))
        #expect(more.map(\.limit) == [3], "the ramp still applies")
    }

    @Test func `attempts from before an outage do not delay the canary`() {
        var scheduler = Scheduler(seed: 1)
        let lane = Scheduler.LaneInfo(id: 0, host: "0", mode: .parallel)
        _ = scheduler.handle(.rows(lane, due: .zero), now: .zero)
        let first = claims(scheduler.handle(.gate(.https("0"), up), now: .zero))
        #expect(first.map(\.limit) == [8])
        _ = scheduler.handle(.claimed(lane: 0, taken: 6, due: .zero), now: .zero)
        #expect(scheduler.inflight == 8)
        _ = scheduler.handle(.claimed(lane: 0, taken: 0, due: .seconds(5)), now: .zero)
        #expect(scheduler.inflight == 6)
        _ = scheduler.handle(.gate(.https("0"), .notReachable), now: .seconds(10))
        let found = scheduler.handle(
            .gate(.https("0"), .reachable(generation: 3, route: 1)),
            now: .seconds(12)
        )
        #expect(claims(found).map(\.limit) == [1])
    }

    @Test func `a flush needs no canary`() {
        var scheduler = offline()
        let canary = claims(scheduler.handle(.gate(.https("0"), up), now: .seconds(60)))
        _ = execute(canary[0], &scheduler, now: .seconds(60))
        #expect(claims(scheduler.handle(.flush(.all), now: .seconds(60))).map(\.limit) == [7])
    }

    @Test func `without a spread, the first request starts when the host becomes reachable`() {
        var scheduler = offline(hosts: 40)
        let started = (0..<40).flatMap { host in
            claims(scheduler.handle(.gate(.https("\(host)"), up), now: .seconds(60)))
        }
        #expect(started.count == 24, "as many as there are slots for origins that have not responded yet")
    }

    @Test func `the spread delays all hosts by the same random time, and a flush ends it`() throws {
        let starts = try (0..<100 as Range<UInt64>).map { seed -> Duration in
            var settings = Scheduler.Settings()
            settings.reconnectSpread = .seconds(30)
            var scheduler = Scheduler(settings: settings, seed: seed)
            for id in 0..<2 as Range<Int64> {
                let lane = Scheduler.LaneInfo(id: id, host: "\(id)", mode: .parallel)
                _ = scheduler.handle(.rows(lane, due: .zero), now: .zero)
                _ = scheduler.handle(.gate(.https("\(id)"), .notReachable), now: .zero)
            }
            for host in ["0", "1"] {
                #expect(claims(scheduler.handle(.gate(.https(host), up), now: .seconds(60))).isEmpty)
            }
            #expect(scheduler.waitReason(ofLane: 0, now: .seconds(60)) == .paced)
            var flushed = scheduler
            #expect(claims(flushed.handle(.flush(.all), now: .seconds(60))).count == 2)
            let wake = try #require(scheduler.nextWake(now: .seconds(60)))
            #expect(claims(scheduler.handle(.wake, now: wake)).count == 2)
            return wake - .seconds(60)
        }
        #expect(starts.allSatisfy { $0 >= .zero && $0 <= .seconds(30) })
        #expect(starts.min()! < .seconds(3) && starts.max()! > .seconds(27))
    }

    @Test func `the spread also delays the first requests after the start`() throws {
        var settings = Scheduler.Settings()
        settings.reconnectSpread = .seconds(30)
        var scheduler = Scheduler(settings: settings, seed: 1)
        let lane = Scheduler.LaneInfo(id: 0, host: "0", mode: .parallel)
        _ = scheduler.handle(.rows(lane, due: .zero), now: .zero)
        #expect(claims(scheduler.handle(.gate(.https("0"), up), now: .zero)).isEmpty)
        let wake = try #require(scheduler.nextWake(now: .zero))
        #expect(claims(scheduler.handle(.wake, now: wake)).map(\.limit) == [8])
    }

    @Test func `signs of overload reduce what a lane has in flight, and a timeout is one`() {
        for (effect, isTimeout, expected) in [
            // After a timeout the origin is also silent, so it gets half of the slots for silent origins.
            (LaneEffect.failure, true, 4), (.failure, false, 8), (.closeFor(.seconds(1)), false, 5),
            (.close, false, 5), (.foreign, false, 8), (.reconnect, true, 8), (.shortage, false, 8),
        ] {
            var scheduler = Scheduler(seed: 1)
            let lane = Scheduler.LaneInfo(id: 0, host: "0", mode: .parallel)
            _ = scheduler.handle(.rows(lane, due: .zero), now: .zero)
            let claim = claims(scheduler.handle(.gate(.https("0"), up), now: .zero))[0]
            _ = scheduler.handle(.claimed(lane: 0, taken: 1, due: nil), now: .zero)
            _ = scheduler.conclude(
                lane: 0,
                epoch: claim.epoch,
                effect: effect,
                failures: 1,
                course: AttemptCourse(isTimeout: isTimeout),
                now: .seconds(1)
            )
            _ = scheduler.handle(.settled(lane: 0, due: .seconds(1), isDistrusted: false), now: .seconds(1))
            _ = scheduler.conclude(lane: 0, epoch: 0, effect: .none, failures: 1, now: .seconds(1))
            let flushed = claims(scheduler.handle(.flush(.all), now: .seconds(1)))
            let granted = flushed.reduce(0) { $0 + $1.limit } + (flushed.isEmpty ? scheduler.inflight : 0)
            #expect(granted == expected, "\(effect)")
            #expect((scheduler.loweredLimit(ofLane: 0) != nil) == (expected < 8), "\(effect)")
        }
    }
}
