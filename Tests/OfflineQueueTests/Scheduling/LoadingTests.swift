internal import NetworkReachability
internal import Testing

@testable internal import OfflineQueue

/// A queue with more lanes than it may have in memory.
@Suite struct LoadingTests {
    /// Servers that refuse connections, except those of the hosts with the given prefix from a time on.
    private struct Hosts: SimulatedNetwork {
        var responding = "good"
        var respondsFrom: Moment = .zero
        var duration: Duration = .milliseconds(1)
        private(set) var attempts: [Int64: [Moment]] = [:]
        private(set) var delivered: [Int64: Moment] = [:]

        mutating func reply(to arrival: FleetArrival) -> (effect: LaneEffect, after: Duration) {
            attempts[arrival.lane.id, default: []].append(arrival.at)
            let isGood = arrival.lane.origin.host.hasPrefix(responding) && arrival.at >= respondsFrom
            return (isGood ? .healthy : .close, duration)
        }

        mutating func ended(_ arrival: FleetArrival, _ effect: LaneEffect, now: Moment) {
            if effect == .healthy { delivered[arrival.lane.id] = now }
        }
    }

    private func lane(_ id: Int64, _ host: String, submitter: UInt32 = 1) -> Scheduler.LaneInfo {
        let origin = Origin(scheme: "https", host: host, port: 443)
        return Scheduler.LaneInfo(id: id, key: LaneKey(origin: origin, submitter: submitter))
    }

    /// Returns a queue with at most 80 lanes in memory, 20 of them of one user, and a request to each of some dead hosts of
    /// the user 1, in the lanes from 1 on. The lanes 5001, 5003 (user 1) and 5002 (user 2) are of good hosts, and have no
    /// requests.
    private func fleet(
        dead: Int64,
        from start: Moment = .zero,
        gate: GateState = .reachable(generation: 1, route: 1),
        _ adjust: (inout Scheduler.Settings) -> Void = { _ in }
    ) -> FleetSimulation<Hosts> {
        var settings = Scheduler.Settings()
        (settings.maximumLanes, settings.turnsFromEndpoints) = (80, 0)
        adjust(&settings)
        var fleet = FleetSimulation(Hosts())
        let lanes = (1...dead).map { lane($0, "dead\($0)") }
        let good = [lane(5001, "good1"), lane(5002, "good2", submitter: 2), lane(5003, "good3")]
        fleet.addQueue(settings, seed: 1, lanes: lanes + good, gate: gate)
        for lane in lanes { fleet.enqueue(lane: lane.id, at: start) }
        return fleet
    }

    @Test func `all hosts are tried although few of their lanes are in memory, and retries take turns`() {
        var fleet = fleet(dead: 2000)
        fleet.run(until: .seconds(3600))
        let attempts = fleet.network.attempts
        let count = attempts.values.reduce(0) { $0 + $1.count }
        let settings = Scheduler.Settings()
        let limit = 2000 + settings.unansweredBurst + Int(settings.unansweredRate * 3600)
        #expect(fleet.mostLanes <= 20 && attempts.count == 2000)
        #expect(fleet.loads <= 3 * count, "\(fleet.loads) loads for \(count) attempts")
        #expect(count <= limit && count > limit - 1500, "\(count) attempts, limit \(limit)")
        // Each host has a fair share of the retries.
        let counts = attempts.values.map(\.count)
        #expect(counts.min()! * 3 > counts.max()!, "\(counts.min()!) to \(counts.max()!)")
    }

    @Test func `requests of another user do not wait for lanes that are not in memory`() throws {
        var fleet = fleet(dead: 2000)
        fleet.enqueue(lane: 5002, at: .seconds(60))
        fleet.run(until: .seconds(61))
        #expect(try #require(fleet.network.delivered[5002]) < .milliseconds(60_100))
    }

    @Test func `a host that has responded does not wait for the first attempts of the same user`() throws {
        var fleet = fleet(dead: 2000, from: .seconds(1))
        fleet.network.duration = .milliseconds(200)
        fleet.enqueue(lane: 5001, at: .zero)
        fleet.run(until: .seconds(2))
        #expect(try #require(fleet.network.delivered[5001]) < .seconds(1))
        fleet.enqueue(lane: 5001, at: .seconds(3))
        fleet.enqueue(lane: 5003, at: .seconds(3))
        fleet.run(until: .seconds(4))
        let (known, new) = (try #require(fleet.network.delivered[5001]), fleet.network.delivered[5003])
        #expect(known > .seconds(3) && new == nil, "a new host waits")
        fleet.run(until: .seconds(120))
        #expect(fleet.network.delivered[5003] != nil)
    }

    @Test func `a path that returns is found for each of many hosts, and all requests are delivered`() {
        var fleet = fleet(dead: 500, gate: .notReachable)
        fleet.network.responding = ""
        fleet.run(until: .seconds(200))
        #expect(fleet.network.attempts.isEmpty && fleet.mostLanes <= 20)
        // Each of 17 lanes looks for a path for five seconds.
        #expect(fleet.loads <= 17 * 200 / 5 + 500, "\(fleet.loads)")
        fleet.turn(.reachable(generation: 2, route: 1), at: .seconds(200))
        fleet.run(until: .seconds(420))
        // Each look takes the memory for five seconds, so 17 lanes look at a time.
        #expect(fleet.network.delivered.count == 500, "\(fleet.network.delivered.count)")
    }

    @Test func `lanes without a path are tried at the longest backoff, although they leave the memory`() {
        var fleet = fleet(dead: 100, gate: .notReachable) {
            $0.backoff = Backoff(base: .seconds(60), cap: .seconds(60))
        }
        fleet.run(until: .seconds(1200))
        let attempts = fleet.network.attempts
        #expect(attempts.count == 100)
        #expect(attempts.values.allSatisfy { $0.first! >= .seconds(60) && $0.count >= 3 })
    }

    @Test func `waiting lanes make place for each other only when the time of one has come`() {
        var settings = Scheduler.Settings()
        settings.maximumLanes = 2
        var scheduler = Scheduler(settings: settings, seed: 1)
        let infos = (1...3).map { Scheduler.LaneInfo(id: $0, host: "\($0)", mode: .parallel) }
        let rows = [60, 70, 5].enumerated().map { Scheduler.LaneRows(infos[$0], due: .seconds($1)) }
        let first = scheduler.handle(.lanes(rows), now: .zero)
        #expect(first == [.watch(.https("1")), .watch(.https("2"))])
        #expect(scheduler.unloaded.count == 1 && scheduler.nextWake(now: .zero) == .seconds(5))
        #expect(scheduler.waitReason(ofLane: 3, now: .seconds(5)) == .noFreeSlot)
        // The watches of lanes in memory have been idle for long enough.
        let load = scheduler.handle(.wake, now: .seconds(5))
        #expect(load == [.unwatch(.https("1")), .load([3])])
        let loaded = scheduler.handle(.loaded([rows[2]], missing: []), now: .seconds(5))
        #expect(loaded == [.watch(.https("3"))] && scheduler.lanes.keys.sorted() == [2, 3])
        #expect(scheduler.unloaded[1]?.loadsAt == .seconds(60))
    }

    @Test func `a lane that was loaded has the state that it had`() {
        var settings = Scheduler.Settings()
        (settings.maximumLanes, settings.backoff) = (1, Backoff(base: .seconds(60), cap: .seconds(600)))
        var scheduler = Scheduler(settings: settings, seed: 1)
        let infos = (1...2).map { Scheduler.LaneInfo(id: $0, host: "\($0)", mode: .parallel) }
        let up = GateState.reachable(generation: 1, route: 1)
        _ = scheduler.handle(.lanes([Scheduler.LaneRows(infos[0], due: .zero)]), now: .zero)
        let claim = claims(scheduler.handle(.gate(.https("1"), up), now: .zero))[0]
        _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: nil), now: .zero)
        let due = scheduler.conclude(lane: 1, epoch: claim.epoch, effect: .close, failures: 1, now: .zero).due
        _ = scheduler.handle(.settled(lane: 1, due: due, isDistrusted: false), now: .zero)
        let before = scheduler.lanes[1]!
        let load = scheduler.handle(.lanes([Scheduler.LaneRows(infos[1], due: .zero)]), now: .seconds(6))
        #expect(load == [.unwatch(.https("1")), .load([2])])
        #expect(scheduler.waitReason(ofLane: 1, now: .seconds(7)) == .laneClosed)
        // New requests do not end the closure.
        _ = scheduler.handle(.lanes([Scheduler.LaneRows(infos[0], due: .seconds(7))]), now: .seconds(7))
        #expect(scheduler.unloaded[1]!.loadsAt >= before.closedUntil)
        _ = scheduler.handle(.loaded([], missing: [2]), now: .seconds(8))
        #expect(scheduler.unloaded[2] == nil)
        let time = scheduler.unloaded[1]!.loadsAt
        #expect(scheduler.nextWake(now: .seconds(8)) == time)
        #expect(scheduler.handle(.wake, now: time) == [.load([1])])
        _ = scheduler.handle(.loaded([Scheduler.LaneRows(infos[0], due: due)], missing: []), now: time)
        let after = scheduler.lanes[1]!
        #expect(after.closures == before.closures && after.isHalfOpen && after.isUnanswered)
        #expect(claims(scheduler.handle(.gate(.https("1"), up), now: time)).map(\.limit) == [1])
        #expect(scheduler.lanes[1]!.resetEpoch == after.resetEpoch, "a new watch proves no change")
    }

    @Test func `a flush reaches lanes that are not in memory, whatever delays them`() {
        var settings = Scheduler.Settings()
        settings.maximumLanes = 1
        var scheduler = Scheduler(settings: settings, seed: 1)
        let infos = (1...2).map { Scheduler.LaneInfo(id: $0, host: "\($0)", mode: .parallel) }
        let later = infos.map { Scheduler.LaneRows($0, due: .seconds(3600)) }
        _ = scheduler.handle(.lanes(later), now: .zero)
        #expect(scheduler.unloaded[2] != nil)
        #expect(scheduler.handle(.flush(LaneSelection(host: "2")), now: .seconds(10)).isEmpty)
        let flushed = Scheduler.LaneRows(infos[1], due: .seconds(3600), flushedAt: .seconds(10))
        let load = scheduler.handle(.lanes([flushed]), now: .seconds(10))
        #expect(load == [.unwatch(.https("1")), .load([2])])
        let claim = claims(scheduler.handle(.loaded([later[1]], missing: []), now: .seconds(11)))
        #expect(claim.map(\.releasing) == [Scheduler.releasedByFlush], "its requests become due")
    }

    @Test func `a flush of a paused lane that is not in memory takes effect when the lane is resumed`() {
        var scheduler = contended()
        scheduler.unloaded.set(2, UnloadedLane(submitter: nil, loadsAt: .never, [.wasLoaded, .isHeld]))
        let resumed = rows(2, due: .seconds(20))
        #expect(scheduler.handle(.lanes([resumed]), now: .seconds(9)).isEmpty, "it is held")
        let paused = Scheduler.LaneRows(resumed.info, due: nil, flushedAt: .seconds(10))
        #expect(scheduler.handle(.lanes([paused]), now: .seconds(10)).contains(.load([2])))
        let loaded = scheduler.handle(.loaded([rows(2, due: nil)], missing: []), now: .seconds(11))
        #expect(claims(loaded).map(\.releasing) == [Scheduler.releasedByFlush])
        #expect(scheduler.lanes[2]?.isHeld == false)
    }

    @Test func `a lane that gets a request while it is read is not forgotten`() {
        var scheduler = contended()
        #expect(scheduler.handle(.lanes([rows(2, due: .seconds(6))]), now: .seconds(6)).contains(.load([2])))
        // The read found no request, but one was enqueued before its result arrived.
        _ = scheduler.handle(.lanes([rows(2, due: .seconds(3600))]), now: .seconds(7))
        #expect(scheduler.lanes[2] != nil)
        _ = scheduler.handle(.lanes([rows(3, due: .seconds(13))]), now: .seconds(13))
        #expect(scheduler.lanes[2] == nil && scheduler.unloaded[2] != nil)
        _ = scheduler.handle(.loaded([], missing: [2]), now: .seconds(14))
        #expect(scheduler.unloaded[2] != nil)
    }

    @Test func `a lane stays in memory until its refusal is confirmed`() {
        var scheduler = contended()
        var refusals = RefusalCheck(since: .zero)
        let isFinal = refusals.refused(
            with: 404,
            after: nil,
            began: .zero,
            delay: .seconds(5),
            now: .zero
        )
        scheduler.lanes[1]!.refusals = refusals
        scheduler.memory.setYield(1, for: nil, from: nil)
        scheduler.updateUnloading(1, now: .zero)
        #expect(!isFinal)
        let load = scheduler.handle(.lanes([rows(2, due: .seconds(6))]), now: .seconds(6))
        #expect(load.isEmpty && scheduler.unloaded[2] != nil)
        // It does not stay for ever if the confirmation is late.
        #expect(scheduler.nextWake(now: .seconds(6)) == .seconds(65))
        #expect(scheduler.handle(.wake, now: .seconds(65)).contains(.load([2])))
    }

    @Test func `a host that did not answer is silent again after it was loaded`() {
        var scheduler = contended()
        let silent: UnloadedLane.Properties = [.wasLoaded, .isFailing, .isUnanswered]
        scheduler.unloaded.set(2, UnloadedLane(submitter: nil, loadsAt: .seconds(6), silent))
        #expect(scheduler.handle(.wake, now: .seconds(6)).contains(.load([2])))
        _ = scheduler.handle(.loaded([rows(2, due: .zero)], missing: []), now: .seconds(6))
        #expect(scheduler.slots.standing(of: scheduler.lanes[2]!.origin) == .silent)
        // Its first path error does not begin another time of fast retries.
        let isReconnecting = scheduler.isReconnecting(lane: 2, isPathError: true, now: .seconds(7))
        #expect(!isReconnecting)
    }

    @Test func `a new request does not wait for the later requests of a closed lane that is not in memory`() {
        var scheduler = contended()
        scheduler.lanes[1]!.closedUntil = .seconds(20)
        _ = scheduler.handle(.lanes([rows(2, due: .seconds(6))]), now: .seconds(6))
        #expect(scheduler.unloaded[1]?.loadsAt == .seconds(20), "and its request is due at 3600 s")
    }

    /// Otherwise each lane without a path would be loaded every five seconds for nothing.
    @Test func `no path is looked for before a request is due`() {
        var scheduler = contended()
        _ = scheduler.handle(.gate(.https("1"), .notReachable), now: .zero)
        _ = scheduler.handle(.lanes([rows(2, due: .seconds(6))]), now: .seconds(6))
        #expect(scheduler.unloaded[1]?.loadsAt == .seconds(3600))
        #expect(scheduler.waitReason(ofLane: 1, now: .seconds(7)) == .noPath)
        _ = scheduler.handle(.lanes([rows(1, due: .seconds(8))]), now: .seconds(8))
        #expect(scheduler.unloaded[1]?.loadsAt == .seconds(8))
    }

    @Test func `a path is looked for when a request is due, before the longest backoff ends`() {
        var scheduler = contended(due: .seconds(60))
        _ = scheduler.handle(.gate(.https("1"), .notReachable), now: .zero)
        _ = scheduler.handle(.lanes([rows(2, due: .seconds(6))]), now: .seconds(6))
        #expect(scheduler.unloaded[1]?.loadsAt == .seconds(60))
    }

    @Test func `a lane whose next claim releases requests is loaded although none is pending`() {
        var scheduler = contended()
        let releasing: UnloadedLane.Properties = [.wasLoaded, .makesDue, .releasesTrust]
        scheduler.unloaded.set(2, UnloadedLane(submitter: nil, loadsAt: .seconds(6), releasing))
        #expect(scheduler.handle(.wake, now: .seconds(6)).contains(.load([2])))
        _ = scheduler.handle(.loaded([rows(2, due: nil)], missing: []), now: .seconds(6))
        #expect(scheduler.lanes[2]?.releasing == [.trust] && scheduler.lanes[2]?.due == .seconds(6))
    }

    /// Returns a scheduler that has just loaded the lane 2, which had no path before. Its wall clock begins at midnight.
    private func reloaded(
        _ constraints: RequestConstraints,
        _ properties: UnloadedLane.Properties
    ) -> Scheduler {
        var scheduler = contended()
        scheduler.setWall(Timestamp(milliseconds: 0), now: .zero)
        let key = LaneKey(origin: Origin(scheme: "https", host: "2", port: 443), constraints: constraints)
        var lane = UnloadedLane(submitter: nil, loadsAt: .seconds(6), properties)
        scheduler.unloaded.setOutage(.noRoute, lastSign: .zero, of: &lane)
        scheduler.unloaded.set(2, lane)
        _ = scheduler.handle(.wake, now: .seconds(6))
        let rows = Scheduler.LaneRows(Scheduler.LaneInfo(id: 2, key: key), due: .zero)
        _ = scheduler.handle(.loaded([rows], missing: []), now: .seconds(6))
        return scheduler
    }

    @Test func `a lane with a closed window waits for its window, also without a path`() throws {
        var constraints = RequestConstraints()
        constraints.window = try DailyWindow(parsing: "00:30-01:00")
        var scheduler = reloaded(constraints, .wasLoaded)
        _ = scheduler.handle(.lanes([rows(3, due: .seconds(7))]), now: .seconds(7))
        #expect(scheduler.unloaded[2]?.loadsAt == .seconds(1800))
        #expect(scheduler.unloaded[2]?.group.purpose == .attempt, "a path is not looked for")
    }

    /// Otherwise each flushed lane would be loaded once a second.
    @Test func `a flushed lane without a path waits for one if its constraints need an interface`() {
        var constraints = RequestConstraints()
        constraints.isUnmetered = true
        var scheduler = reloaded(constraints, [.wasLoaded, .isForced])
        _ = scheduler.handle(.lanes([rows(3, due: .seconds(7))]), now: .seconds(12))
        #expect(scheduler.unloaded[2]?.loadsAt == .seconds(17))
        #expect(
            scheduler.unloaded[2]?.group.purpose == .look
                && scheduler.unloaded[2]?.properties.contains(.isForced) == true
        )
    }

    /// Silent hosts keep their slots for long, so the lanes with a turn would fill the memory.
    @Test func `a lane that has its turn and gets no slot makes place for another one`() {
        var settings = Scheduler.Settings()
        (settings.gateTimeout, settings.turnsFromEndpoints, settings.inflight) = (.zero, 0, 1)
        settings.maximumLanes = 16
        var scheduler = Scheduler(settings: settings, seed: 1)
        let rows = (1...16 as ClosedRange<Int64>).map { number in
            let info = Scheduler.LaneInfo(id: number, host: "\(number)", mode: .parallel)
            return Scheduler.LaneRows(info, due: .seconds(1))
        }
        _ = scheduler.handle(.lanes(Array(rows[..<14])), now: .zero)
        for id in 1...14 as ClosedRange<Int64> { scheduler.lanes[id]!.isUnanswered = true }
        let first = claims(scheduler.handle(.wake, now: .seconds(1))).map(\.lane)
        #expect(first.count == 1 && scheduler.lanes.values.count { $0.hasTurn } == 13)
        #expect(scheduler.handle(.lanes(Array(rows[14...])), now: .seconds(2)).isEmpty)
        _ = scheduler.handle(.claimed(lane: first[0], taken: 1, due: nil), now: .seconds(2))
        let settled = Scheduler.Event.settled(lane: first[0], due: .seconds(100), isDistrusted: false)
        let second = claims(scheduler.handle(settled, now: .seconds(5))).map(\.lane)
        let loads = scheduler.handle(.wake, now: .seconds(10)).flatMap { action -> [Int64] in
            if case .load(let ids) = action { ids } else { [] }
        }
        #expect(second.count == 1 && scheduler.lanes[second[0]] != nil, "it has a slot now")
        #expect(scheduler.lanes.count < 14, "\(loads)")
    }

    @Test func `a host that has responded does not wait for the retries of those that have not`() {
        var unloaded = UnloadedLanes()
        for id in 1...100 as ClosedRange<Int64> {
            unloaded.set(id, UnloadedLane(submitter: 1, loadsAt: .zero, .isUnanswered))
        }
        let known: UnloadedLane.Properties = [.isUnanswered, .hasResponded, .isFailing]
        unloaded.set(200, UnloadedLane(submitter: 1, loadsAt: .seconds(5), known))
        let groups = Set(unloaded.groups.map(\.key))
        let first = (1...3).compactMap { _ in unloaded.takeNext(from: groups)?.id }
        #expect(first.contains(200))
    }

    @Test func `fast retries after a path error do not begin again when a lane was loaded`() {
        var scheduler = contended()
        let isFirst = scheduler.isReconnecting(lane: 1, isPathError: true, now: .seconds(1))
        _ = scheduler.handle(.lanes([rows(2, due: .seconds(6))]), now: .seconds(6))
        _ = scheduler.handle(.loaded([], missing: [2]), now: .seconds(6))
        #expect(scheduler.handle(.wake, now: .seconds(3600)).contains(.load([1])))
        _ = scheduler.handle(.loaded([rows(1, due: .seconds(3600))], missing: []), now: .seconds(3600))
        let isSecond = scheduler.isReconnecting(lane: 1, isPathError: true, now: .seconds(3601))
        #expect(isFirst && !isSecond && scheduler.lanes[1]!.isUnanswered)
    }

    @Test func `a lane whose requests have ended leaves no trace`() {
        var scheduler = contended()
        _ = scheduler.handle(.lanes((2...100).map { rows($0, due: .seconds(3600)) }), now: .zero)
        #expect(scheduler.unloaded.count == 99)
        var actions = scheduler.handle(.emptied(lanes: Array(2...100)), now: .seconds(6))
        for _ in 0..<100 {
            let loads = actions.flatMap { action -> [Int64] in
                if case .load(let ids) = action { ids } else { [] }
            }
            actions = scheduler.handle(.loaded([], missing: loads), now: .seconds(7))
        }
        #expect(scheduler.unloaded.count == 1 && scheduler.unloaded[1] != nil && scheduler.lanes.isEmpty)
    }

    /// Returns a scheduler that may have one lane in memory. The lane 1 is there, and waits until `due`.
    private func contended(due: Moment = .seconds(3600)) -> Scheduler {
        var settings = Scheduler.Settings()
        settings.maximumLanes = 1
        var scheduler = Scheduler(settings: settings, seed: 1)
        _ = scheduler.handle(.lanes([rows(1, due: due)]), now: .zero)
        scheduler.isMemoryContended = true
        scheduler.updateUnloading(1, now: .zero)
        return scheduler
    }

    private func rows(_ id: Int64, due: Moment?) -> Scheduler.LaneRows {
        Scheduler.LaneRows(Scheduler.LaneInfo(id: id, host: "\(id)", mode: .parallel), due: due)
    }

    private func claims(_ actions: [Scheduler.Action]) -> [Scheduler.Claim] {
        actions.compactMap { if case .claim(let claim) = $0 { claim } else { nil } }
    }
}
