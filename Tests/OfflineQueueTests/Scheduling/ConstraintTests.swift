internal import NetworkReachability
internal import Testing

@testable internal import OfflineQueue

/// Lanes whose requests have constraints, in virtual time.
@Suite struct ConstraintTests {
    private static let mobile = PathInterface(kind: .cellular, isMetered: true)
    private static let wired = PathInterface(kind: .ethernet, isMetered: false)
    /// 2027-01-15 08:00:00 UTC.
    private static let morning = start

    private func claims(_ actions: [Scheduler.Action]) -> [Int64] {
        actions.compactMap { if case .claim(let claim) = $0 { claim.lane } else { nil } }
    }

    private func interrupted(_ actions: [Scheduler.Action]) -> [Int64] {
        actions.compactMap { if case .interrupt(let lane) = $0 { lane } else { nil } }
    }

    private func up(_ interface: PathInterface?, _ generation: UInt64 = 1) -> GateState {
        .reachable(generation: generation, route: generation, interface: interface)
    }

    /// Returns a scheduler whose lane 1 has constraints and whose lane 2 has none, and what it does when the host of
    /// both becomes reachable.
    private func started(
        _ interface: PathInterface?,
        _ adjust: (inout RequestConstraints) throws -> Void
    ) rethrows -> (Scheduler, [Scheduler.Action]) {
        var constraints = RequestConstraints()
        try adjust(&constraints)
        var scheduler = Scheduler(seed: 1)
        scheduler.setWall(Self.morning, now: .zero)
        let origin = Origin(scheme: "https", host: "a", port: 443)
        let lane = Scheduler.LaneInfo(id: 1, origin: origin, mode: .parallel, constraints: constraints)
        _ = scheduler.handle(.rows(lane, due: .zero), now: .zero)
        _ = scheduler.handle(.rows(.init(id: 2, host: "a", mode: .parallel), due: .zero), now: .zero)
        let actions = scheduler.handle(.gate(.https("a"), up(interface)), now: .zero)
        return (scheduler, actions)
    }

    @Test func `requests for an unmetered connection wait without blocking others, and the edge sends them`()
    {
        var (scheduler, actions) = started(Self.mobile) { $0.isUnmetered = true }
        #expect(claims(actions) == [2])
        #expect(scheduler.waitReason(ofLane: 1, now: .zero) == .constraint(.unmetered))
        _ = scheduler.handle(.claimed(lane: 2, taken: 1, due: nil), now: .zero)
        #expect(scheduler.nextWake(now: .zero) == nil, "only the edge ends the wait")
        let flushed = claims(scheduler.handle(.flush(.all), now: .seconds(1)))
        #expect(flushed == [2], "a flush does not change the network")
        _ = scheduler.handle(.claimed(lane: 2, taken: 0, due: nil), now: .seconds(1))
        let edge = scheduler.handle(.gate(.https("a"), up(Self.wired, 2)), now: .seconds(9))
        #expect(claims(edge).contains(1))
    }

    @Test(
        arguments: [
            ([.ethernet], ConstraintTests.wired, true), ([.ethernet, .wifi], ConstraintTests.wired, true),
            ([.wifi], ConstraintTests.wired, false), ([.cellular], ConstraintTests.mobile, true),
            ([.ethernet], nil, false),
        ] as [(Set<InterfaceType>, PathInterface?, Bool)]
    )
    func `requests wait for an interface of their kind`(
        kinds: Set<InterfaceType>,
        interface: PathInterface?,
        isSent: Bool
    ) {
        let (scheduler, actions) = started(interface) { $0.interfaceKinds = kinds }
        #expect(claims(actions).contains(1) == isSent)
        #expect(
            scheduler.waitReason(ofLane: 1, now: .zero) == (isSent ? nil : .constraint(.interfaceKind(kinds)))
        )
    }

    @Test func `while the interface is unknown, only requests that need no particular one are tried`() {
        for state in [GateState.unknown, .reachable(generation: 1)] {
            var (scheduler, _) = started(Self.mobile) { $0.isUnmetered = true }
            _ = scheduler.handle(.claimed(lane: 2, taken: 0, due: nil), now: .zero)
            #expect(claims(scheduler.handle(.gate(.https("a"), state), now: .seconds(1))).isEmpty)
            #expect(claims(scheduler.handle(.wake, now: .seconds(7200))).isEmpty)
            #expect(!scheduler.mayStillSend(lane: 1, now: .seconds(7200)))
        }
    }

    @Test func `requests wait for their window, and are sent when it opens`() throws {
        var (scheduler, actions) = try started(Self.wired) {
            $0.window = try DailyWindow(parsing: "09:00-10:00")
        }
        #expect(claims(actions) == [2])
        let window = try DailyWindow(parsing: "09:00-10:00")
        #expect(scheduler.waitReason(ofLane: 1, now: .zero) == .constraint(.window(window)))
        _ = scheduler.handle(.claimed(lane: 2, taken: 1, due: nil), now: .zero)
        var (now, wakes) = (Moment.zero, 0)
        repeat {
            let next = try #require(scheduler.nextWake(now: now))
            #expect(next > now && next <= now + .seconds(60))
            (now, wakes) = (next, wakes + 1)
            actions = scheduler.handle(.wake, now: now)
        } while claims(actions).isEmpty
        #expect(now == .seconds(3600) && wakes == 60, "the wall clock is checked once a minute")
    }

    @Test func `while its window is closed, a request does not wait for a path`() throws {
        let window = try DailyWindow(parsing: "09:00-10:00")
        var (scheduler, _) = started(Self.wired) {
            $0.window = window
            $0.isUnmetered = true
        }
        _ = scheduler.handle(.gate(.https("a"), .notReachable), now: .seconds(1))
        #expect(scheduler.waitReason(ofLane: 1, now: .seconds(2)) == .constraint(.window(window)))
        #expect(scheduler.waitReason(ofLane: 1, now: .seconds(3600)) == .noPath)
    }

    @Test func `attempts are interrupted after their window, even if the interface is not known`() throws {
        var (scheduler, actions) = try started(Self.wired) {
            $0.window = try DailyWindow(parsing: "07:00-08:01")
            $0.isUnmetered = true
        }
        #expect(Set(claims(actions)) == [1, 2])
        for lane in [1, 2] as [Int64] {
            _ = scheduler.handle(.claimed(lane: lane, taken: 1, due: nil), now: .zero)
        }
        actions = scheduler.handle(.gate(.https("a"), .unknown), now: .seconds(30))
        #expect(interrupted(actions).isEmpty, "an unknown interface does not end attempts")
        _ = scheduler.handle(.gate(.https("a"), .notReachable), now: .seconds(40))
        actions = scheduler.handle(.gate(.https("a"), .unknown), now: .seconds(60))
        #expect(interrupted(actions) == [1])
    }

    @Test(arguments: [30, -30] as [Int64])
    func `a window follows a wall clock that is set`(minutes: Int64) throws {
        var (scheduler, _) = try started(Self.wired) { $0.window = try DailyWindow(parsing: "09:00-10:00") }
        _ = scheduler.handle(.claimed(lane: 2, taken: 0, due: nil), now: .zero)
        let opening = Moment.seconds(3600 - 60 * minutes)
        scheduler.setWall(Self.morning + .seconds(60 * minutes), now: .zero)
        var now = Moment.zero
        while true {
            now = try #require(scheduler.nextWake(now: now))
            let isSent = !claims(scheduler.handle(.wake, now: now)).isEmpty
            #expect(isSent == (now == opening))
            if isSent || now > opening { break }
        }
    }

    @Test func `when a constraint is lost, the attempts of the lane are interrupted, and no others`() throws {
        var (scheduler, actions) = started(Self.wired) { $0.isUnmetered = true }
        #expect(Set(claims(actions)) == [1, 2])
        for lane in [1, 2] as [Int64] {
            _ = scheduler.handle(.claimed(lane: lane, taken: 4, due: nil), now: .zero)
        }
        let lost = scheduler.handle(.gate(.https("a"), .notReachable), now: .seconds(1))
        #expect(interrupted(lost).isEmpty, "the path may return within the grace period")
        #expect(
            interrupted(scheduler.handle(.gate(.https("a"), up(Self.wired, 2)), now: .seconds(2))).isEmpty
        )
        actions = scheduler.handle(.gate(.https("a"), up(Self.mobile, 3)), now: .seconds(3))
        #expect(interrupted(actions) == [1])
        #expect(
            !scheduler.mayStillSend(lane: 1, now: .seconds(3))
                && scheduler.mayStillSend(lane: 2, now: .seconds(3))
        )
    }

    @Test func `a claimed request is not sent without its interface when the path is lost`() {
        var (scheduler, actions) = started(Self.wired) { $0.isUnmetered = true }
        #expect(Set(claims(actions)) == [1, 2])
        _ = scheduler.handle(.gate(.https("a"), .notReachable), now: .seconds(1))
        // A request with no constraint may be sent, because the state of the path may be wrong.
        #expect(!scheduler.mayStillSend(lane: 1, now: .seconds(1)))
        #expect(scheduler.mayStillSend(lane: 2, now: .seconds(1)))
        _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: nil), now: .seconds(1))
        _ = scheduler.conclude(lane: 1, epoch: 0, effect: .renewed, failures: 1, now: .seconds(1))
        let settled = Scheduler.Event.settled(lane: 1, due: .seconds(1), isDistrusted: false)
        #expect(claims(scheduler.handle(settled, now: .seconds(1))).isEmpty)
        #expect(scheduler.waitReason(ofLane: 1, now: .seconds(7200)) == .noPath)
        actions = scheduler.handle(.gate(.https("a"), up(Self.wired, 2)), now: .seconds(7201))
        #expect(claims(actions) == [1])
    }

    @Test func `when a window closes, the attempts of the lane are interrupted, even if no slot is free`()
        throws
    {
        var (scheduler, actions) = try started(Self.wired) {
            $0.window = try DailyWindow(parsing: "07:00-08:01")
        }
        #expect(Set(claims(actions)) == [1, 2])
        for lane in [1, 2] as [Int64] {
            _ = scheduler.handle(.claimed(lane: lane, taken: 4, due: .zero), now: .zero)
        }
        for host in 0..<24 as Range<Int64> {
            _ = scheduler.handle(
                .rows(.init(id: host + 10, host: "h\(host)", mode: .fifo), due: .zero),
                now: .zero
            )
            let state = GateState.reachable(generation: 1)
            actions = scheduler.handle(.gate(.https("h\(host)"), state), now: .zero)
            for lane in claims(actions) {
                _ = scheduler.handle(.claimed(lane: lane, taken: 1, due: nil), now: .zero)
                _ = scheduler.conclude(lane: lane, epoch: 0, effect: .healthy, failures: 1, now: .zero)
            }
        }
        #expect(scheduler.inflight == 32)
        #expect(scheduler.nextWake(now: .zero) == .seconds(60))
        actions = scheduler.handle(.wake, now: .seconds(60))
        #expect(interrupted(actions) == [1])
        #expect(scheduler.claimNext(lane: 1, after: .healthy, now: .seconds(60)) == nil)
    }
}
