internal import NetworkReachability
internal import Testing

@testable internal import OfflineQueue

/// Lanes of more hosts than can be watched at a time.
@Suite struct WatchTests {
    /// Lanes with a request each, to hosts with the names of the lanes. Every event takes effect at once.
    private struct Hosts {
        var scheduler: Scheduler
        var states: [Int64: GateState]
        var effect = LaneEffect.close
        private(set) var now: Moment = .zero
        private(set) var attempts: [(lane: Int64, at: Moment, claim: Scheduler.Claim)] = []
        private(set) var watched: Set<Endpoint> = []
        private(set) var mostWatched = 0
        private(set) var unwatchedAttempts = 0

        init(_ scheduler: Scheduler, states: [Int64: GateState]) {
            (self.scheduler, self.states) = (scheduler, states)
            let rows = states.keys.sorted().map {
                Scheduler.LaneRows(WatchTests.lane($0), due: .zero)
            }
            feed(.lanes(rows))
        }

        mutating func run(until end: Moment) {
            for _ in 0..<100_000 {
                guard let next = scheduler.nextWake(now: now), next <= end else { break }
                now = next
                feed(.wake)
            }
            now = end
        }

        mutating func feed(_ event: Scheduler.Event) {
            for action in scheduler.handle(event, now: now) {
                switch action {
                case .watch(let endpoint):
                    watched.insert(endpoint)
                    mostWatched = max(mostWatched, watched.count)
                    feed(.gate(endpoint, states[Int64(endpoint.host)!]!))
                case .unwatch(let endpoint): watched.remove(endpoint)
                case .claim(let claim): attempt(claim)
                default: break
                }
            }
        }

        private mutating func attempt(_ claim: Scheduler.Claim) {
            if !watched.contains(WatchTests.lane(claim.lane).origin.endpoint) { unwatchedAttempts += 1 }
            attempts.append((claim.lane, now, claim))
            feed(.claimed(lane: claim.lane, taken: 1, due: nil))
            let due = scheduler.conclude(
                lane: claim.lane,
                epoch: claim.epoch,
                effect: effect,
                failures: 1,
                now: now
            ).due
            feed(.settled(lane: claim.lane, due: effect == .healthy ? nil : due, isDistrusted: false))
        }

        func times(ofLane lane: Int64) -> [Moment] { attempts.filter { $0.lane == lane }.map(\.at) }
    }

    private static func lane(_ id: Int64) -> Scheduler.LaneInfo {
        Scheduler.LaneInfo(id: id, host: "\(id)", mode: .parallel)
    }

    private func settings(watches: Int) -> Scheduler.Settings {
        var settings = Scheduler.Settings()
        settings.backoff = Backoff(base: .seconds(60), cap: .seconds(60))
        settings.maximumWatches = watches
        settings.turnsFromEndpoints = 0
        (settings.unansweredRate, settings.unansweredBurst) = (1000, 1000)
        return settings
    }

    private static let up = GateState.reachable(generation: 1, route: 1)

    private func claims(_ actions: [Scheduler.Action]) -> [Scheduler.Claim] {
        actions.compactMap { if case .claim(let claim) = $0 { claim } else { nil } }
    }

    @Test func `a host without a path yields its watch after five seconds to a host that waits`() {
        var scheduler = Scheduler(settings: settings(watches: 1), seed: 1)
        let first = scheduler.handle(.rows(Self.lane(1), due: .zero), now: .zero)
        let second = scheduler.handle(.rows(Self.lane(2), due: .zero), now: .zero)
        #expect(first == [.watch(.https("1"))] && second.isEmpty)
        _ = scheduler.handle(.gate(.https("1"), .notReachable), now: .zero)
        #expect(scheduler.waitReason(ofLane: 2, now: .zero) == .noFreeSlot)
        #expect(scheduler.nextWake(now: .zero) == .seconds(5))
        let turn = scheduler.handle(.wake, now: .seconds(5))
        #expect(turn == [.unwatch(.https("1")), .watch(.https("2"))])
        #expect(scheduler.waitReason(ofLane: 1, now: .seconds(5)) == .noPath)
        let late = scheduler.handle(.gate(.https("1"), Self.up), now: .seconds(6))
        #expect(late.isEmpty, "the watch has ended")
        let found = scheduler.handle(.gate(.https("2"), Self.up), now: .seconds(6))
        #expect(claims(found).map(\.lane) == [2])
        _ = scheduler.handle(.claimed(lane: 2, taken: 1, due: nil), now: .seconds(6))
        #expect(scheduler.handle(.wake, now: .seconds(60)).isEmpty, "a host in use does not yield")
        let ended = scheduler.handle(.settled(lane: 2, due: nil, isDistrusted: false), now: .seconds(60))
        #expect(ended == [.unwatch(.https("2")), .watch(.https("1"))])
    }

    @Test func `hosts without a path take turns, and each is tried at the longest backoff`() {
        let down = [1, 2, 3, 4, 5].map { (Int64($0), GateState.notReachable) }
        var hosts = Hosts(
            Scheduler(settings: settings(watches: 2), seed: 1),
            states: Dictionary(uniqueKeysWithValues: down)
        )
        hosts.run(until: .seconds(400))
        #expect(hosts.mostWatched == 2 && hosts.unwatchedAttempts == 0)
        for lane in 1...5 as ClosedRange<Int64> {
            let times = hosts.times(ofLane: lane)
            let isFirstInTime = times.first.map { (.seconds(60) ... .seconds(110)).contains($0) } ?? false
            #expect(isFirstInTime && times.count >= 3, "lane \(lane): \(times)")
        }
        hosts.states = hosts.states.mapValues { _ in Self.up }
        hosts.effect = .healthy
        hosts.run(until: .seconds(700))
        #expect(hosts.scheduler.lanes.isEmpty && hosts.watched.isEmpty)
    }

    @Test func `lanes keep their place in the line for a turn while their watches end`() {
        var settings = settings(watches: 2)
        (settings.unansweredRate, settings.unansweredBurst) = (0.05, 1)
        let down = (1...8).map { (Int64($0), GateState.notReachable) }
        var hosts = Hosts(
            Scheduler(settings: settings, seed: 1),
            states: Dictionary(uniqueKeysWithValues: down)
        )
        hosts.run(until: .seconds(3600))
        let counts = (1...8).map { hosts.times(ofLane: Int64($0)).count }
        // There is a turn every 20 s, for each lane every 160 s.
        #expect(counts.max()! - counts.min()! <= 4 && counts.min()! >= 15, "\(counts)")
    }

    @Test(arguments: [GateState.reachable(generation: 7, route: 7), .notReachable, .unknown])
    func `only an outage that has ended resets a lane whose watch begins again`(earlier: GateState)
        throws
    {
        var scheduler = Scheduler(settings: settings(watches: 1), seed: 1)
        let rows = [1, 2].map { Scheduler.LaneRows(Self.lane($0), due: .zero) }
        _ = scheduler.handle(.lanes(rows), now: .zero)
        // The attempt, if there is one, fails, and the lane waits until 60 s.
        for claim in claims(scheduler.handle(.gate(.https("1"), earlier), now: .zero)) {
            _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: nil), now: .zero)
            let due = scheduler.conclude(
                lane: 1,
                epoch: claim.epoch,
                effect: .close,
                failures: 1,
                now: .zero
            ).due
            _ = scheduler.handle(.settled(lane: 1, due: due, isDistrusted: false), now: .zero)
        }
        _ = scheduler.handle(.wake, now: .seconds(5))
        _ = scheduler.handle(.gate(.https("2"), .notReachable), now: .seconds(5))
        // The lane without a path has no backoff. It looks for the path again.
        let resumed: Moment = earlier.isDown ? .seconds(10) : .seconds(60)
        #expect(scheduler.nextWake(now: .seconds(5)) == resumed)
        let turn = scheduler.handle(.wake, now: resumed)
        #expect(turn == [.unwatch(.https("2")), .watch(.https("1"))])
        let unknown = scheduler.handle(.gate(.https("1"), .unknown), now: resumed)
        let found = scheduler.handle(.gate(.https("1"), Self.up), now: resumed + .milliseconds(1))
        let attempts = claims(unknown) + claims(found)
        let attempt = try #require(attempts.first)
        #expect(!found.contains(.dropConnections) && !found.contains(.abort(.https("1"))))
        let isReset = scheduler.lanes[1]!.resetEpoch > attempt.epoch
        #expect(attempts.map(\.lane) == [1] && attempt.releasing == nil)
        #expect(scheduler.gates[.https("1")]!.earlier == nil && isReset == earlier.isDown)
    }

    @Test func `a flush watches a host before it tries it, and the first state of the watch does not end it`()
    {
        var settings = settings(watches: 2)
        settings.inflight = 1
        var scheduler = Scheduler(settings: settings, seed: 1)
        _ = scheduler.handle(.rows(Self.lane(1), due: .zero), now: .zero)
        #expect(claims(scheduler.handle(.gate(.https("1"), Self.up), now: .zero)).map(\.lane) == [1])
        _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: nil), now: .zero)
        let rows = [2, 3].map { Scheduler.LaneRows(Self.lane($0), due: .zero) }
        #expect(scheduler.handle(.lanes(rows), now: .zero) == [.watch(.https("2"))])
        _ = scheduler.handle(.gate(.https("2"), .notReachable), now: .zero)
        let flush = LaneSelection(host: "3")
        #expect(scheduler.handle(.flush(flush), now: .seconds(1)).isEmpty)
        let turn = scheduler.handle(.wake, now: .seconds(5))
        #expect(turn == [.unwatch(.https("2")), .watch(.https("3"))], "and the only slot is in use")
        _ = scheduler.handle(.gate(.https("3"), .notReachable), now: .seconds(6))
        let settled = Scheduler.Event.settled(lane: 1, due: nil, isDistrusted: false)
        #expect(claims(scheduler.handle(settled, now: .seconds(7))).map(\.lane) == [3])
    }

    @Test func `the watch of another user's host does not wait for hosts that are in use`() {
        var scheduler = Scheduler(settings: settings(watches: 8), seed: 1)
        let rows = (1...9).map { id in
            let origin = Origin(scheme: "https", host: "\(id)", port: 443)
            let key = LaneKey(origin: origin, submitter: id < 9 ? 1 : 2)
            return Scheduler.LaneRows(Scheduler.LaneInfo(id: Int64(id), key: key), due: .zero)
        }
        let busy = scheduler.handle(.lanes(Array(rows.prefix(8))), now: .zero)
        #expect(busy == [.watch(.https("1")), .watch(.https("2"))], "a quarter of the watches")
        #expect(scheduler.handle(.lanes([rows[8]]), now: .zero) == [.watch(.https("9"))])
    }

    @Test func `a path is probed for portals again when its watch begins again`() {
        var settings = settings(watches: 1)
        settings.checksPortals = true
        settings.portalBackoff = Backoff(base: .seconds(60), cap: .seconds(60))
        var scheduler = Scheduler(settings: settings, seed: 1)
        let origin = Origin(scheme: "http", host: "1", port: 80)
        let plain = Scheduler.LaneInfo(id: 1, origin: origin, mode: .parallel)
        _ = scheduler.handle(.rows(plain, due: .zero), now: .zero)
        _ = scheduler.handle(.rows(Self.lane(2), due: .zero), now: .zero)
        let probing = scheduler.handle(.gate(.http("1"), Self.up), now: .zero)
        #expect(probing.contains(.probePortal(.http("1"), probe: 1)))
        #expect(scheduler.handle(.wake, now: .seconds(8)).isEmpty, "a running probe uses the watch")
        let captive = PortalFinding.captive(page: nil)
        _ = scheduler.handle(.portalProbed(.http("1"), probe: 1, captive), now: .seconds(8))
        #expect(scheduler.waitReason(ofLane: 1, now: .seconds(8)) == .captivePortal(page: nil))
        let turn = scheduler.handle(.wake, now: .seconds(13))
        #expect(turn.contains(.unwatch(.http("1"))) && turn.contains(.watch(.https("2"))))
        #expect(scheduler.waitReason(ofLane: 1, now: .seconds(13)) == .noFreeSlot)
        _ = scheduler.handle(.gate(.https("2"), .notReachable), now: .seconds(13))
        _ = scheduler.handle(.wake, now: .seconds(18))
        let again = scheduler.handle(.gate(.http("1"), Self.up), now: .seconds(18))
        #expect(claims(again).isEmpty && again.contains { if case .probePortal = $0 { true } else { false } })
    }
}
