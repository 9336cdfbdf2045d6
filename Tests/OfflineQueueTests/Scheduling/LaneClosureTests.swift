internal import Testing

@testable internal import OfflineQueue

/// How the scheduler reports and resets closures of lanes after failures.
@Suite struct LaneClosureTests {
    private let info = Scheduler.LaneInfo(
        id: 1,
        origin: Origin(scheme: "http", host: "a", port: 80),
        label: "reports",
        mode: .parallel
    )

    /// Returns a scheduler with one lane, which an attempt has closed at time 0.
    private func closed() throws -> Scheduler {
        var scheduler = Scheduler(seed: 1)
        _ = scheduler.handle(.gate(.http("a"), .reachable(generation: 1)), now: .zero)
        _ = scheduler.handle(.lanes([.init(info, due: .zero)]), now: .zero)
        let actions = scheduler.handle(.gate(.http("a"), .reachable(generation: 1)), now: .zero)
        let claim = try #require(actions.firstClaim)
        _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: nil), now: .zero)
        let settlement = scheduler.conclude(
            lane: 1,
            epoch: claim.epoch,
            effect: .close,
            failures: 1,
            now: .zero
        )
        _ = scheduler.handle(.settled(lane: 1, due: settlement.due, isDistrusted: false), now: .zero)
        return scheduler
    }

    @Test func `a lane closed after failures is reported until it opens`() throws {
        let scheduler = try closed()
        let closure = try #require(scheduler.closure(ofLane: 1, now: .zero))
        #expect(closure.key.origin.host == "a" && closure.key.label == "reports" && !closure.isLocal)
        #expect(scheduler.closures(now: .zero) == [closure])
        #expect(scheduler.waitReason(ofLane: 1, now: .zero) == .laneClosed)
        #expect(scheduler.closures(now: closure.until).isEmpty)
    }

    @Test func `a lane without requests resets its failures, and tries a request that was added meanwhile`()
        throws
    {
        var scheduler = try closed()
        let actions = scheduler.handle(.emptied(lanes: [1]), now: .zero)
        #expect(scheduler.closures(now: .zero).isEmpty)
        // The claim may take a request that arrived in the meantime. If it takes none, the lane is removed.
        #expect(actions.firstClaim?.lane == 1)
        let rest = scheduler.handle(.claimed(lane: 1, taken: 0, due: nil), now: .zero)
        #expect(rest == [.unwatch(.http("a"))])
    }

    @Test func `a server's Retry-After survives an idle lane`() throws {
        var scheduler = try closed()
        _ = scheduler.conclude(lane: 1, epoch: 0, effect: .closeFor(.seconds(60)), failures: 1, now: .zero)
        #expect(scheduler.handle(.emptied(lanes: [1]), now: .zero).firstClaim == nil)
    }

    @Test(arguments: [false, true])
    func `a lane that was empty is reported, even if a request was added afterwards`(isPaused: Bool) async {
        let key = info.key
        func record(due: Duration? = nil, isPaused: Bool = false, wasEmpty: Bool = false) -> LaneRecord {
            LaneRecord(
                id: 1,
                key: key,
                notBefore: nil,
                due: due,
                isPaused: isPaused,
                wasEmpty: wasEmpty
            )
        }
        let changes = LaneChanges()
        changes.post([record(due: .zero)])
        changes.post([record(wasEmpty: true)])
        changes.post([record(due: isPaused ? nil : .seconds(1), isPaused: isPaused)])
        let expected = record(due: isPaused ? nil : .zero, isPaused: isPaused, wasEmpty: true)
        #expect(await changes.next() == [expected])
    }

    @Test(arguments: [
        ("API.example.com", "api.example.com"), ("192.0.2.1", "192.0.2.1"), ("::1", "::1"), ("[::1]", "::1"),
        ("http://a", nil), ("a:80", nil), ("a/b", nil), ("u@a", nil), ("", nil), ("a b", nil),
        ("*.example.com", nil),
    ]) func `a host is accepted in the form that URLs use`(text: String, host: String?) {
        #expect(Origin.host(named: text) == host)
    }
}

extension [Scheduler.Action] {
    var firstClaim: Scheduler.Claim? {
        for case .claim(let claim) in self { return claim }
        return nil
    }
}
