internal import OfflineQueue
internal import Testing

/// Lanes of plain HTTP wait until their path was probed for captive portals.
@Suite struct PortalSchedulerTests {
    private let plain = PortalSchedulerTests.lane(1, "http", "a")

    private static func lane(
        _ id: Int64,
        _ scheme: String,
        _ host: String,
        port: Int? = nil
    ) -> Scheduler.LaneInfo {
        let origin = Origin(scheme: scheme, host: host, port: port ?? (scheme == "http" ? 80 : 443))
        return Scheduler.LaneInfo(id: id, origin: origin, mode: .parallel)
    }

    /// Returns a scheduler to which `plain` was added, and the actions after its host became reachable.
    private func started(checksPortals: Bool = true) -> (Scheduler, [Scheduler.Action]) {
        var settings = Scheduler.Settings()
        settings.checksPortals = checksPortals
        var scheduler = Scheduler(settings: settings, seed: 1)
        _ = scheduler.handle(.rows(plain, due: .zero), now: .zero)
        let actions = scheduler.handle(.gate(.http("a"), .reachable(generation: 1)), now: .zero)
        return (scheduler, actions)
    }

    private func claims(_ actions: [Scheduler.Action]) -> [Int64] {
        actions.compactMap { if case .claim(let claim) = $0 { claim.lane } else { nil } }
    }

    private func probes(_ actions: [Scheduler.Action]) -> [Int] {
        actions.compactMap { if case .probePortal(_, let probe) = $0 { probe } else { nil } }
    }

    private func end(
        _ probe: Int,
        _ finding: PortalFinding,
        _ scheduler: inout Scheduler,
        now: Moment = .zero
    ) -> [Scheduler.Action] {
        scheduler.handle(.portalProbed(.http("a"), probe: probe, finding), now: now)
    }

    /// Returns a scheduler whose host became reachable after an outage, at 61 s, and the actions that followed.
    private func afterOutage() -> (Scheduler, [Scheduler.Action]) {
        var settings = Scheduler.Settings()
        settings.checksPortals = true
        var scheduler = Scheduler(settings: settings, seed: 1)
        _ = scheduler.handle(.rows(plain, due: .zero), now: .zero)
        _ = scheduler.handle(.gate(.http("a"), .notReachable), now: .zero)
        let found = scheduler.handle(.gate(.http("a"), .reachable(generation: 1)), now: .seconds(61))
        return (scheduler, found)
    }

    /// Directly after an outage a probe fails for the same reasons as a request.
    @Test func `a probe that fails right after an outage is repeated before anything is sent`() {
        var (scheduler, found) = afterOutage()
        #expect(probes(found) == [1] && claims(found).isEmpty)
        #expect(claims(end(1, .failed, &scheduler, now: .seconds(61))).isEmpty)
        let repeated = scheduler.handle(.wake, now: .milliseconds(61_250))
        #expect(probes(repeated) == [2] && claims(repeated).isEmpty)
        #expect(claims(end(2, .failed, &scheduler, now: .seconds(67))) == [1], "the probe's server is down")
    }

    @Test func `the failure of an earlier probe lets a host send, but not right after an outage`() {
        var (scheduler, found) = afterOutage()
        #expect(probes(found) == [1] && claims(found).isEmpty)
        let hasFailed = Scheduler.Event.portalProbeHasFailed(.http("a"), probe: 1)
        #expect(claims(scheduler.handle(hasFailed, now: .seconds(62))).isEmpty)
        // The path to another host did not change, but its probe may fail because of the same outage.
        let origin = Origin(scheme: "http", host: "b", port: 80)
        let other = Scheduler.LaneInfo(id: 2, origin: origin, mode: .parallel)
        _ = scheduler.handle(.rows(other, due: .zero), now: .seconds(62))
        let known = scheduler.handle(.gate(.http("b"), .reachable(generation: 1)), now: .seconds(62))
        #expect(probes(known) == [2])
        let otherHasFailed = Scheduler.Event.portalProbeHasFailed(.http("b"), probe: 2)
        #expect(claims(scheduler.handle(otherHasFailed, now: .seconds(62))).isEmpty)
        #expect(claims(scheduler.handle(hasFailed, now: .seconds(67))) == [1])
        #expect(claims(scheduler.handle(otherHasFailed, now: .seconds(67))) == [2])
    }

    @Test(arguments: ["http", "https"])
    func `attempts over plain HTTP do not continue over a path that was not probed`(scheme: String) {
        var settings = Scheduler.Settings()
        settings.checksPortals = true
        var scheduler = Scheduler(settings: settings, seed: 1)
        let lane = Self.lane(1, scheme, "a")
        _ = scheduler.handle(.rows(lane, due: .zero), now: .zero)
        let first = GateState.reachable(generation: 1, route: 1)
        _ = scheduler.handle(.gate(lane.origin.endpoint, first), now: .zero)
        let same = GateState.reachable(generation: 2, route: 1)
        let actions = scheduler.handle(.gate(lane.origin.endpoint, same), now: .seconds(1))
        #expect(actions.contains { if case .abort = $0 { true } else { false } } == (scheme == "http"))
        #expect(
            actions.contains { if case .restartStalled = $0 { true } else { false } } == (scheme == "https")
        )
    }

    @Test func `without a configured probe nothing is probed`() {
        let (_, actions) = started(checksPortals: false)
        #expect(claims(actions) == [1] && probes(actions).isEmpty)
    }

    @Test func `the first request over plain HTTP waits for one probe of the path`() {
        var (scheduler, actions) = started()
        #expect(claims(actions).isEmpty && probes(actions) == [1])
        #expect(scheduler.waitReason(ofLane: 1, now: .zero) == nil, "no portal is known yet")
        #expect(probes(scheduler.handle(.rows(plain, due: .zero), now: .zero)).isEmpty)
        #expect(probes(scheduler.handle(.rows(Self.lane(2, "http", "a"), due: .zero), now: .zero)).isEmpty)
        #expect(Set(claims(end(1, .clear, &scheduler))) == [1, 2])
    }

    @Test(arguments: ["https", "http"])
    func `lanes over HTTPS and lanes of other paths do not wait for a portal`(scheme: String) {
        var (scheduler, _) = started()
        _ = end(1, .captive(page: "http://portal/"), &scheduler)
        let lane = Self.lane(2, scheme, scheme == "http" ? "b" : "a")
        var actions = scheduler.handle(.rows(lane, due: .zero), now: .zero)
        actions += scheduler.handle(.gate(lane.origin.endpoint, .reachable(generation: 1)), now: .zero)
        for probe in probes(actions) {
            actions += scheduler.handle(.portalProbed(.http("b"), probe: probe, .clear), now: .zero)
        }
        #expect(claims(actions) == [2])
    }

    @Test
    func `while there is a portal, its path is probed again after 2 to 60 s, and the reason is visible`()
        throws
    {
        var (scheduler, actions) = started()
        var now = Moment.zero
        for round in 0..<40 {
            #expect(
                claims(end(probes(actions)[0], .captive(page: "http://p/"), &scheduler, now: now)).isEmpty
            )
            #expect(scheduler.waitReason(ofLane: 1, now: now) == .captivePortal(page: "http://p/"))
            let next = try #require(scheduler.nextWake(now: now), "round \(round)")
            #expect((.seconds(2)...(.seconds(round < 1 ? 4 : 60))).contains(next - now), "round \(round)")
            actions = scheduler.handle(.wake, now: next)
            #expect(probes(actions).count == 1 && claims(actions).isEmpty)
            #expect(scheduler.waitReason(ofLane: 1, now: next) == .captivePortal(page: "http://p/"))
            now = next
        }
        #expect(claims(end(probes(actions)[0], .clear, &scheduler, now: now)) == [1])
        #expect(scheduler.waitReason(ofLane: 1, now: now) == nil)
    }

    @Test func `a path change is probed at once, and the result of the earlier probe is ignored`() {
        var (scheduler, actions) = started()
        let changed = scheduler.handle(.gate(.http("a"), .reachable(generation: 2)), now: .seconds(1))
        #expect(probes(changed) == [2])
        #expect(claims(end(probes(actions)[0], .clear, &scheduler, now: .seconds(1))).isEmpty)
        #expect(claims(end(2, .captive(page: nil), &scheduler, now: .seconds(1))).isEmpty)
        actions = scheduler.handle(.gate(.http("a"), .reachable(generation: 3)), now: .seconds(1))
        #expect(probes(actions) == [3])
        #expect(claims(end(3, .clear, &scheduler, now: .seconds(1))) == [1])
    }

    @Test func `a flush probes a path with a portal again instead of ignoring the portal`() {
        var (scheduler, _) = started()
        _ = end(1, .captive(page: nil), &scheduler)
        let actions = scheduler.handle(.flush(.all), now: .milliseconds(1))
        #expect(claims(actions).isEmpty && probes(actions) == [2])
    }

    @Test func `a lane does not wait for a probe that the flush of another lane has dropped`() {
        var (scheduler, _) = started()
        let actions = scheduler.handle(.flush(LaneSelection(label: "other")), now: .milliseconds(1))
        #expect(claims(actions).isEmpty && probes(actions) == [2])
        #expect(claims(end(2, .clear, &scheduler, now: .milliseconds(2))) == [1])
    }

    @Test func `requests are sent after a failed probe, and the path is probed again meanwhile`() {
        var (scheduler, _) = started()
        #expect(claims(end(1, .failed, &scheduler)) == [1])
        _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: nil), now: .zero)
        #expect(probes(scheduler.handle(.rows(plain, due: .seconds(1)), now: .seconds(1))).isEmpty)
        _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: nil), now: .seconds(1))
        let later = scheduler.handle(.rows(plain, due: .seconds(60)), now: .seconds(60))
        #expect(claims(later) == [1] && probes(later) == [2])
        #expect(claims(end(2, .captive(page: nil), &scheduler, now: .seconds(61))).isEmpty)
        #expect(!scheduler.mayStillSend(lane: 1, now: .seconds(61)))
    }

    @Test func `a response that may be a portal's makes the path be probed before the next request`() throws {
        var (scheduler, _) = started()
        let actions = end(1, .clear, &scheduler)
        let epochs = actions.compactMap { if case .claim(let claim) = $0 { claim.epoch } else { nil } }
        _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: nil), now: .zero)
        #expect(scheduler.mayStillSend(lane: 1, now: .seconds(1)))
        scheduler.suspectPortal(lane: 1, now: .seconds(1))
        #expect(!scheduler.mayStillSend(lane: 1, now: .seconds(1)))
        let settlement = scheduler.conclude(
            lane: 1,
            epoch: try #require(epochs.first),
            effect: .close,
            failures: 1,
            now: .seconds(1)
        )
        let settled = Scheduler.Event.settled(lane: 1, due: settlement.due, isDistrusted: false)
        #expect(probes(scheduler.handle(settled, now: .seconds(1))).isEmpty, "the lane is closed")
        #expect(probes(scheduler.handle(.wake, now: settlement.due)) == [2])
        _ = end(2, .captive(page: nil), &scheduler, now: settlement.due)
        let next = try #require(scheduler.nextWake(now: settlement.due))
        #expect(probes(scheduler.handle(.wake, now: next)) == [3])
        #expect(claims(end(3, .clear, &scheduler, now: next)) == [1])
    }

    @Test func `a response over HTTPS that may be a portal's makes the path of plain HTTP be probed again`() {
        var (scheduler, _) = started()
        _ = end(1, .clear, &scheduler)
        _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: nil), now: .zero)
        _ = scheduler.handle(.rows(Self.lane(2, "https", "a"), due: .zero), now: .zero)
        _ = scheduler.handle(.gate(.https("a"), .reachable(generation: 1)), now: .zero)
        scheduler.suspectPortal(lane: 2, now: .seconds(1))
        #expect(!scheduler.mayStillSend(lane: 1, now: .seconds(1)))
        #expect(probes(scheduler.handle(.rows(plain, due: .seconds(1)), now: .seconds(1))) == [2])
    }

    @Test func `when a portal is gone, requests that its certificate has held are tried at once`() throws {
        var (scheduler, _) = started()
        _ = end(1, .captive(page: nil), &scheduler)
        _ = scheduler.handle(.rows(Self.lane(2, "https", "a"), due: .zero), now: .zero)
        let actions = scheduler.handle(.gate(.https("a"), .reachable(generation: 1)), now: .zero)
        let epochs = actions.compactMap { if case .claim(let claim) = $0 { claim.epoch } else { nil } }
        _ = scheduler.handle(.claimed(lane: 2, taken: 1, due: nil), now: .zero)
        let epoch = try #require(epochs.first)
        _ = scheduler.conclude(lane: 2, epoch: epoch, effect: .distrust, failures: 1, now: .zero)
        _ = scheduler.handle(.settled(lane: 2, due: nil, isDistrusted: true), now: .zero)
        let next = try #require(scheduler.nextWake(now: .zero))
        #expect(probes(scheduler.handle(.wake, now: next)) == [2])
        let released = end(2, .clear, &scheduler, now: next).compactMap { action in
            if case .claim(let claim) = action, claim.lane == 2 { claim.releasing } else { nil }
        }
        #expect(released == [[.trust]])
    }

    @Test(arguments: [("https", 443), ("http", 8080)])
    func `when a portal is gone, its lanes send a canary, and lanes that it did not affect continue`(
        scheme: String,
        port: Int
    ) throws {
        var (scheduler, _) = started()
        _ = end(1, .captive(page: nil), &scheduler)
        let other = Self.lane(2, scheme, "a", port: port)
        let endpoint = other.origin.endpoint
        _ = scheduler.handle(.rows(other, due: .zero), now: .zero)
        var actions = scheduler.handle(.gate(endpoint, .reachable(generation: 1)), now: .zero)
        for probe in probes(actions) {
            actions = scheduler.handle(.portalProbed(endpoint, probe: probe, .clear), now: .zero)
        }
        let before = actions.compactMap { if case .claim(let claim) = $0 { claim } else { nil } }
        #expect(before.map(\.limit) == [8])
        _ = scheduler.handle(.claimed(lane: 2, taken: 8, due: .zero), now: .zero)
        let probe = try #require(probes(scheduler.handle(.wake, now: .seconds(60))).first)
        actions = end(probe, .clear, &scheduler, now: .seconds(60))
        let canary = actions.compactMap { if case .claim(let claim) = $0 { claim } else { nil } }
        #expect(canary.map(\.lane) == [1] && canary.map(\.limit) == [1])
        _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: .zero), now: .seconds(60))
        #expect(scheduler.inflight == 9)
        _ = scheduler.conclude(
            lane: 2,
            epoch: before[0].epoch,
            effect: .healthy,
            failures: 1,
            now: .seconds(61)
        )
        let next = scheduler.claimNext(lane: 2, after: .healthy, now: .seconds(61))
        #expect(next?.limit == 1 && next?.epoch == before[0].epoch, "the lane was not reset")
        _ = scheduler.conclude(
            lane: 1,
            epoch: canary[0].epoch,
            effect: .healthy,
            failures: 1,
            now: .seconds(61)
        )
        let settled = Scheduler.Event.settled(lane: 1, due: nil, isDistrusted: false)
        actions = scheduler.handle(settled, now: .seconds(61))
        let ramp = actions.compactMap { if case .claim(let claim) = $0 { claim.limit } else { nil } }
        #expect(ramp == [4], "the ramp begins")
    }

    @Test func `when the portal of one port is gone, the other ports with a portal are probed at once`()
        throws
    {
        var (scheduler, _) = started()
        _ = end(1, .captive(page: nil), &scheduler)
        let other = Self.lane(2, "http", "a", port: 8080)
        let endpoint = other.origin.endpoint
        _ = scheduler.handle(.rows(other, due: .zero), now: .zero)
        _ = scheduler.handle(.gate(endpoint, .reachable(generation: 1)), now: .zero)
        _ = scheduler.handle(.portalProbed(endpoint, probe: 2, .captive(page: nil)), now: .zero)
        let next = try #require(scheduler.nextWake(now: .zero))
        var ended: [Endpoint] = []
        var actions = scheduler.handle(.wake, now: next)
        while case .probePortal(let probed, let probe)? = actions.first(where: { isProbe($0) }) {
            ended.append(probed)
            actions = scheduler.handle(.portalProbed(probed, probe: probe, .clear), now: next)
            #expect(claims(actions) == [probed == endpoint ? 2 : 1])
        }
        #expect(Set(ended) == [.http("a"), endpoint])
    }

    private func isProbe(_ action: Scheduler.Action) -> Bool {
        if case .probePortal = action { true } else { false }
    }

    /// A probe that gets no response takes 10 s.
    @Test func `while the probe's server is down, a host whose requests come one at a time does not wait`() {
        var (scheduler, _) = started()
        var actions = end(1, .failed, &scheduler)
        var now = Moment.zero
        var number = 1
        for round in 1...100 {
            #expect(claims(actions) == [1], "round \(round)")
            _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: nil), now: now)
            let idle = scheduler.handle(.settled(lane: 1, due: nil, isDistrusted: false), now: now)
            #expect(!idle.contains(.unwatch(.http("a"))))
            now = .seconds(100 * round)
            actions = scheduler.handle(.rows(plain, due: now), now: now)
            #expect(probes(actions) == [number + 1], "the path is probed meanwhile")
            number += 1
            _ = end(number, .failed, &scheduler, now: now + .seconds(10))
        }
    }

    @Test func `a host whose requests come one at a time is probed once`() {
        var (scheduler, actions) = started()
        actions = end(1, .clear, &scheduler)
        for second in 1...100 {
            #expect(claims(actions) == [1])
            let now = Moment.seconds(second)
            _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: nil), now: now)
            let idle = scheduler.handle(.settled(lane: 1, due: nil, isDistrusted: false), now: now)
            #expect(!idle.contains(.unwatch(.http("a"))))
            actions = scheduler.handle(.rows(plain, due: now), now: now)
            #expect(probes(actions).isEmpty && !actions.contains(.watch(.http("a"))))
        }
        _ = scheduler.handle(.claimed(lane: 1, taken: 0, due: nil), now: .seconds(100))
        let changed = scheduler.handle(.gate(.http("a"), .reachable(generation: 2)), now: .seconds(101))
        #expect(probes(changed).isEmpty, "no request waits")
        #expect(probes(scheduler.handle(.rows(plain, due: .zero), now: .seconds(102))) == [2])
    }

    @Test func `at most 64 hosts without requests stay watched`() {
        var (scheduler, _) = started()
        var unwatched: [Endpoint] = []
        for index in 0..<100 {
            let host = "host\(index)"
            let lane = Self.lane(Int64(index + 10), "http", host)
            _ = scheduler.handle(.rows(lane, due: .zero), now: .zero)
            var actions = scheduler.handle(.gate(.http(host), .reachable(generation: 1)), now: .zero)
            actions = scheduler.handle(
                .portalProbed(.http(host), probe: probes(actions)[0], .clear),
                now: .zero
            )
            #expect(claims(actions) == [lane.id])
            actions = scheduler.handle(.claimed(lane: lane.id, taken: 0, due: nil), now: .zero)
            unwatched += actions.compactMap { if case .unwatch(let endpoint) = $0 { endpoint } else { nil } }
        }
        #expect(unwatched == (0..<36).map { .http("host\($0)") })
    }

    @Test func `a stopped scheduler probes nothing`() {
        var (scheduler, _) = started()
        _ = scheduler.handle(.stop, now: .zero)
        #expect(probes(scheduler.handle(.gate(.http("a"), .reachable(generation: 2)), now: .zero)).isEmpty)
    }
}
