internal import Testing

@testable internal import OfflineQueue

/// What a response of a server, to a lane or to a probe, means for the other lanes of its origin.
@Suite struct ResponseTests {
    private static let origin = Origin(scheme: "https", host: "a", port: 443)
    private static let timeout: Duration = .seconds(10)

    /// The backoff is so long that only an opening explains an attempt.
    private static let settings: Scheduler.Settings = {
        var settings = Scheduler.Settings()
        settings.backoff = Backoff(base: .seconds(600), cap: .seconds(900))
        return settings
    }()

    /// Returns a scheduler with lanes of one origin, each with many due requests, of which each has one in flight.
    private func sending(
        lanes: ClosedRange<Int64> = 1...2,
        mode: LaneKey.Mode = .fifo,
        _ settings: Scheduler.Settings = settings
    ) -> Scheduler {
        var scheduler = Scheduler(settings: settings, seed: 1)
        let gate = Scheduler.Event.gate(.https("a"), .reachable(generation: 1, route: 1))
        for id in lanes {
            let info = Scheduler.LaneInfo(id: id, host: "a", mode: mode)
            for event in [.rows(info, due: .zero), gate] {
                execute(Self.claims(scheduler.handle(event, now: .zero)), &scheduler, now: .zero)
            }
        }
        return scheduler
    }

    private static func claims(_ actions: [Scheduler.Action]) -> [Scheduler.Claim] {
        actions.compactMap { if case .claim(let claim) = $0 { claim } else { nil } }
    }

    /// Reports that each claim, and each that follows from it, took one request.
    private func execute(_ claims: [Scheduler.Claim], _ scheduler: inout Scheduler, now: Moment) {
        for claim in claims {
            let claimed = Scheduler.Event.claimed(lane: claim.lane, taken: 1, due: .never)
            execute(Self.claims(scheduler.handle(claimed, now: now)), &scheduler, now: now)
        }
    }

    /// Ends an attempt of a lane. Returns the claims that follow.
    ///
    /// - Parameter epoch: The epoch of its claim. Default `nil`: the current one.
    private func end(
        _ lane: Int64,
        _ effect: LaneEffect,
        hasResponse: Bool = false,
        lasted: Duration = timeout,
        epoch: Int? = nil,
        _ scheduler: inout Scheduler,
        now: Moment
    ) -> [Scheduler.Claim] {
        let course = AttemptCourse(
            duration: lasted,
            hasResponse: hasResponse || effect == .healthy,
            isTimeout: !hasResponse && effect == .failure
        )
        let settlement = scheduler.conclude(
            lane: lane,
            epoch: epoch ?? scheduler.lanes[lane]!.epoch,
            effect: effect,
            failures: 1,
            course: course,
            now: now
        )
        let due = effect == .healthy ? nil : settlement.due
        return Self.claims(
            scheduler.handle(.settled(lane: lane, due: due, isDistrusted: false), now: now)
        )
    }

    @Test(arguments: [LaneEffect.failure, .close])
    func `a success opens the other lanes of its origin whose attempts got no response`(effect: LaneEffect) {
        var scheduler = sending()
        #expect(end(2, effect, &scheduler, now: .seconds(10)).isEmpty)
        let opened = end(1, .healthy, &scheduler, now: .seconds(12)).filter { $0.lane == 2 }
        #expect(opened.map(\.limit) == [1])
        #expect(opened.first?.releasing == [], "the requests of the lane are due now")
        #expect(opened.first.map { $0.retries == nil } == true, "a canary needs no retry budget")
    }

    @Test func `a lane is not opened again if the attempt after the opening fails too`() throws {
        var scheduler = sending()
        _ = end(2, .failure, &scheduler, now: .seconds(10))
        let success = end(1, .healthy, &scheduler, now: .seconds(12))
        let canary = try #require(success.first { $0.lane == 2 })
        execute(success, &scheduler, now: .seconds(12))
        #expect(end(2, .close, epoch: canary.epoch, &scheduler, now: .seconds(22)).isEmpty)
        let other = end(1, .healthy, &scheduler, now: .seconds(23))
        #expect(other.map(\.lane) == [1])
        execute(other, &scheduler, now: .seconds(23))
        // The backoff of the lane passes, and its next attempt fails because of another outage.
        let wake = try #require(scheduler.closure(ofLane: 2, now: .seconds(23))?.until)
        let next = Self.claims(scheduler.handle(.wake, now: wake))
        let retry = try #require(next.first { $0.lane == 2 })
        execute(next, &scheduler, now: wake)
        _ = end(2, .close, epoch: retry.epoch, &scheduler, now: wake + Self.timeout)
        let again = end(1, .healthy, &scheduler, now: wake + Self.timeout)
        #expect(again.contains { $0.lane == 2 })
    }

    /// A rate limit or a missing slot may delay the first attempt for long.
    @Test func `the first claim after an opening counts as the opening`() {
        var lane = SchedulerLane(Scheduler.LaneInfo(id: 1, host: "a", mode: .parallel))
        lane.openByResponse(at: .zero, now: .seconds(10))
        lane.claimedAfterOpening(now: .seconds(30))
        #expect(lane.openedByResponse == .seconds(30))
        lane.claimedAfterOpening(now: .seconds(60))
        #expect(lane.openedByResponse == .seconds(30))
    }

    @Test func `a lane whose attempt got a response keeps its backoff`() {
        var scheduler = sending()
        _ = end(2, .failure, hasResponse: true, &scheduler, now: .seconds(10))
        #expect(end(1, .healthy, &scheduler, now: .seconds(12)).allSatisfy { $0.lane == 1 })
        #expect(!scheduler.awaitsResponse(of: [Self.origin]))
    }

    @Test func `neither a success nor a probe opens a lane that its server closed with Retry-After`() {
        var scheduler = sending(lanes: 1...1)
        let info = Scheduler.LaneInfo(id: 2, host: "a", mode: .parallel)
        for claim in Self.claims(scheduler.handle(.rows(info, due: .zero), now: .zero)) {
            _ = scheduler.handle(.claimed(lane: 2, taken: 2, due: .never), now: .zero)
            #expect(claim.limit >= 2)
        }
        _ = end(2, .closeFor(.seconds(3600)), hasResponse: true, &scheduler, now: .seconds(9))
        _ = end(2, .failure, epoch: 0, &scheduler, now: .seconds(10))
        #expect(scheduler.awaitsResponse(of: [Self.origin]))
        var probed = scheduler
        #expect(Self.claims(probed.handle(.probeSucceeded([Self.origin]), now: .seconds(12))).isEmpty)
        #expect(end(1, .healthy, &scheduler, now: .seconds(12)).allSatisfy { $0.lane == 1 })
    }

    @Test func `a success does not open a lane that waits because this machine is short of a resource`() {
        var scheduler = sending()
        _ = end(2, .failure, &scheduler, now: .seconds(10))
        _ = scheduler.conclude(lane: 2, epoch: 0, effect: .shortage, failures: 1, now: .seconds(11))
        #expect(scheduler.isShort(lane: 2, now: .seconds(11)))
        #expect(end(1, .healthy, &scheduler, now: .seconds(11)).allSatisfy { $0.lane == 1 })
        #expect(scheduler.isShort(lane: 2, now: .seconds(11)))
    }

    @Test func `a successful probe opens the lanes of its origin, and no others`() {
        var scheduler = sending()
        for lane in 1...2 as ClosedRange<Int64> { _ = end(lane, .close, &scheduler, now: .seconds(10)) }
        let other = Origin(scheme: "http", host: "a", port: 80)
        #expect(Self.claims(scheduler.handle(.probeSucceeded([other]), now: .seconds(11))).isEmpty)
        let opened = Self.claims(scheduler.handle(.probeSucceeded([other, Self.origin]), now: .seconds(12)))
        #expect(opened.map(\.lane).sorted() == [1, 2])
        #expect(Self.claims(scheduler.handle(.probeSucceeded([Self.origin]), now: .seconds(13))).isEmpty)
    }

    @Test func `a probe has no effect while there is no path`() {
        var scheduler = sending()
        _ = end(2, .close, &scheduler, now: .seconds(10))
        _ = scheduler.handle(.gate(.https("a"), .notReachable), now: .seconds(11))
        #expect(Self.claims(scheduler.handle(.probeSucceeded([Self.origin]), now: .seconds(12))).isEmpty)
    }

    @Test func `after a probe the lanes of an origin send no more at once than the ramp permits`() {
        var settings = Self.settings
        // Otherwise the window, which the failures reduce, would hide the ramp.
        settings.windowDecrease = 1
        var scheduler = sending(lanes: 1...100, mode: .parallel, settings)
        #expect(scheduler.inflight == 8)
        // The server responds once. Then every lane fails, as slots become free.
        var now: Moment = .seconds(1)
        execute(end(1, .healthy, lasted: .seconds(1), &scheduler, now: now), &scheduler, now: now)
        while scheduler.inflight > 0 {
            now += .seconds(1)
            for lane in scheduler.lanes.values.filter({ $0.inflight > 0 }).map(\.id).sorted() {
                execute(end(lane, .close, &scheduler, now: now), &scheduler, now: now)
            }
        }
        #expect(scheduler.closures(now: now).count == 99)
        let opened = Self.claims(scheduler.handle(.probeSucceeded([Self.origin]), now: now))
        #expect(opened.map(\.limit) == Array(repeating: 1, count: settings.rampStart))
    }

    @Test func `after a probe the requests wait for the spread, and a flush sends them`() throws {
        var settings = Self.settings
        settings.reconnectSpread = .seconds(30)
        // The queue also waits for the spread after its start.
        var scheduler = Scheduler(settings: settings, seed: 1)
        let info = Scheduler.LaneInfo(id: 1, host: "a", mode: .fifo)
        _ = scheduler.handle(.rows(info, due: .zero), now: .zero)
        _ = scheduler.handle(.gate(.https("a"), .reachable(generation: 1, route: 1)), now: .zero)
        execute(Self.claims(scheduler.handle(.wake, now: .seconds(30))), &scheduler, now: .seconds(30))
        _ = end(1, .close, &scheduler, now: .seconds(40))
        #expect(Self.claims(scheduler.handle(.probeSucceeded([Self.origin]), now: .seconds(60))).isEmpty)
        #expect(scheduler.waitReason(ofLane: 1, now: .seconds(60)) == .paced)
        var flushed = scheduler
        #expect(Self.claims(flushed.handle(.flush(.all), now: .seconds(60))).map(\.lane) == [1])
        let wake = try #require(scheduler.nextWake(now: .seconds(60)))
        #expect(wake <= .seconds(90))
        #expect(Self.claims(scheduler.handle(.wake, now: wake)).map(\.lane) == [1])
    }
}
