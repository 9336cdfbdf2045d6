internal import NetwatchEventLoop
internal import Testing

@testable internal import OfflineQueue

/// When requests that are held for `auth` are tried again.
@Suite struct AuthRetriesTests {
    private static func scope(_ host: String) -> CredentialScope {
        CredentialScope(credential: "token", origin: Origin(scheme: "https", host: host, port: 443))
    }

    private let scope = Self.scope("a")
    private let intervals = Scheduler.Settings().authRetries

    private func place(_ sequence: Int64, lane: Int64 = 1) -> HeldPlace {
        HeldPlace(lane: lane, sequence: sequence)
    }

    @Test func `one request is tried after 5 minutes, and then at intervals that double up to an hour`()
        throws
    {
        var (retries, random) = (AuthRetries(intervals: intervals), SplitMix64(seed: 1))
        #expect(retries.rejected(scope, 1, began: .zero, now: .zero, &random) == nil)
        var (rejected, last) = (Moment.zero, HeldPlace?.none)
        for (number, seconds) in [300, 600, 1200, 2400, 3600, 3600].enumerated() {
            let next = try #require(retries.next(scope))
            let interval = Duration.seconds(seconds)
            #expect((interval...interval * 11 / 10).contains(next - rejected), "try \(number)")
            let release = try #require(retries.nextCame(scope, now: next, &random))
            #expect(release == .next(scope, after: last))
            last = place(Int64(number))
            retries.released(release, .some(last: last!))
            rejected = next + .seconds(1)
            #expect(retries.rejected(scope, 1, began: next, now: rejected, &random) == nil)
        }
    }

    @Test func `a success of an attempt after the first rejection releases all others once`() {
        var (retries, random) = (AuthRetries(intervals: intervals), SplitMix64(seed: 1))
        func accepted(_ request: Int64 = 7, began: Int, now: Int) -> HeldRelease? {
            retries.accepted(scope, request, began: .seconds(began), now: .seconds(now), &random)
        }
        func rejected(began: Int, now: Int) -> HeldRelease? {
            retries.rejected(scope, 1, began: .seconds(began), now: .seconds(now), &random)
        }
        #expect(accepted(began: 0, now: 1) == nil, "nothing is held")
        _ = rejected(began: 0, now: 10)
        #expect(accepted(began: 5, now: 11) == nil, "the attempt began before the rejection")
        #expect(accepted(began: 10, now: 12) == .all(scope))
        #expect(accepted(began: 12, now: 13) == nil)
        #expect(rejected(began: 11, now: 14) == .all(scope), "it was in flight when the others were released")
    }

    @Test func `if the server rejects some requests for good, others do not release them again and again`()
        throws
    {
        var (retries, random) = (AuthRetries(intervals: intervals), SplitMix64(seed: 1))
        func accepted(_ request: Int64, at now: Moment) -> HeldRelease? {
            retries.accepted(scope, request, began: now, now: now, &random)
        }
        _ = retries.rejected(scope, 1, began: .zero, now: .zero, &random)
        #expect(accepted(7, at: .seconds(1)) == .all(scope))
        _ = retries.rejected(scope, 1, began: .seconds(1), now: .seconds(2), &random)
        #expect(accepted(8, at: .seconds(3)) == nil)
        let first = try #require(retries.next(scope))
        #expect(retries.nextCame(scope, now: first, &random) == .all(scope), "another request has succeeded")
        _ = retries.rejected(scope, 1, began: first, now: first, &random)
        let second = try #require(retries.next(scope))
        let release = try #require(retries.nextCame(scope, now: second, &random))
        #expect(release == .next(scope, after: nil), "no request has succeeded")
        retries.released(release, .some(last: place(42)))
        #expect(accepted(42, at: second) == .all(scope), "the request that was tried has succeeded")
    }

    @Test func `a second failure of the server holds other requests, and a success releases them, too`() {
        var (retries, random) = (AuthRetries(intervals: intervals), SplitMix64(seed: 1))
        for second in [0, 60, 120] {
            let now = Moment.seconds(second)
            #expect(retries.rejected(scope, Int64(second), began: now, now: now, &random) == nil)
            let accepted = retries.accepted(scope, 7, began: now, now: now + .seconds(1), &random)
            #expect(accepted == .all(scope), "after \(second) s")
        }
    }

    @Test func `the rejection of a single try does not show that the server accepts others`() throws {
        var (retries, random) = (AuthRetries(intervals: intervals), SplitMix64(seed: 1))
        _ = retries.rejected(scope, 1, began: .zero, now: .zero, &random)
        #expect(retries.accepted(scope, 7, began: .zero, now: .seconds(1), &random) == .all(scope))
        #expect(retries.accepted(scope, 1, began: .seconds(1), now: .seconds(2), &random) == nil)
        _ = retries.rejected(scope, 2, began: .seconds(60), now: .seconds(60), &random)
        let next = try #require(retries.next(scope))
        let release = try #require(retries.nextCame(scope, now: next, &random))
        retries.released(release, .some(last: place(2)))
        _ = retries.rejected(scope, 2, began: next, now: next, &random)
        #expect(retries.accepted(scope, 8, began: next, now: next, &random) == .all(scope))
    }

    /// Otherwise a slow rejection would never count if others precede it.
    @Test func `a request that is rejected again counts although a new one was rejected before it`() {
        var (retries, random) = (AuthRetries(intervals: intervals), SplitMix64(seed: 1))
        func accepted(at second: Int) -> HeldRelease? {
            retries.accepted(scope, 100, began: .seconds(second), now: .seconds(second), &random)
        }
        _ = retries.rejected(scope, 1, began: .zero, now: .zero, &random)
        #expect(accepted(at: 1) == .all(scope))
        #expect(retries.rejected(scope, 2, began: .seconds(2), now: .seconds(2), &random) == nil)
        #expect(accepted(at: 3) == .all(scope))
        #expect(retries.rejected(scope, 1, began: .seconds(2), now: .seconds(4), &random) == nil)
        #expect(accepted(at: 5) == nil)
    }

    /// A sample of the held requests suffices.
    @Test func `many requests that are rejected for good are released once`() {
        var (retries, random) = (AuthRetries(intervals: intervals), SplitMix64(seed: 1))
        for request in 1...100 as ClosedRange<Int64> {
            _ = retries.rejected(scope, request, began: .zero, now: .zero, &random)
        }
        #expect(retries.accepted(scope, 200, began: .seconds(1), now: .seconds(1), &random) == .all(scope))
        for request in (1...100 as ClosedRange<Int64>).reversed() {
            _ = retries.rejected(scope, request, began: .seconds(1), now: .seconds(2), &random)
        }
        #expect(retries.accepted(scope, 201, began: .seconds(3), now: .seconds(3), &random) == nil)
    }

    @Test func `a scope is forgotten when none of its requests is held, unless one was rejected meanwhile`()
        throws
    {
        for isRejectedMeanwhile in [false, true] {
            var (retries, random) = (AuthRetries(intervals: intervals), SplitMix64(seed: 1))
            _ = retries.rejected(scope, 1, began: .zero, now: .zero, &random)
            let next = try #require(retries.next(scope))
            let release = try #require(retries.nextCame(scope, now: next, &random))
            if isRejectedMeanwhile {
                _ = retries.rejected(scope, 1, began: next, now: next + .seconds(1), &random)
            }
            retries.released(release, .none)
            #expect(retries.isEmpty != isRejectedMeanwhile)
        }
    }

    @Test func `the requests of many scopes are tried together, lane by lane`() {
        var (retries, random) = (AuthRetries(intervals: intervals), SplitMix64(seed: 1))
        for number in 0...AuthRetries.maximumScopes {
            _ = retries.rejected(Self.scope("\(number)"), 1, began: .zero, now: .zero, &random)
        }
        #expect(retries.next(Self.scope("\(AuthRetries.maximumScopes)")) == nil)
        #expect(retries.nextOfOthers != nil)
        let results: [ReleasedRequests] = [.some(last: place(0, lane: 9)), .none, .none]
        let releases = results.map { result in
            let release = retries.nextOfOthersCame(now: .zero, &random)
            retries.released(release, result)
            return release
        }
        #expect(releases == [.lanes(after: 0), .lanes(after: 9), .lanes(after: 0)])
        #expect(retries.nextOfOthers == nil)
    }

    // MARK: The scheduler

    @Test func `the scheduler wakes for the next try although all slots are in use, and a stop ends it`()
        throws
    {
        var settings = Scheduler.Settings()
        (settings.gateTimeout, settings.inflight) = (.zero, 1)
        var scheduler = Scheduler(settings: settings, seed: 1)
        let info = Scheduler.LaneInfo(id: 1, host: "b", mode: .parallel)
        _ = scheduler.handle(.rows(info, due: .zero), now: .zero)
        _ = scheduler.handle(.claimed(lane: 1, taken: 1, due: .zero), now: .zero)
        #expect(
            scheduler.handle(.credentialRejected(scope, request: 1, began: .zero), now: .zero).isEmpty
        )
        let next = try #require(scheduler.nextWake(now: .zero))
        #expect(scheduler.nextTry(ofHeld: .auth, lane: nil) { scope } == next)
        #expect((.seconds(300) ... .seconds(330)).contains(next))
        #expect(scheduler.handle(.wake, now: next) == [.release(.next(scope, after: nil))])
        let accepted = Scheduler.Event.credentialAccepted(scope, request: 1, began: next)
        #expect(scheduler.handle(accepted, now: next) == [.release(.all(scope))])
        _ = scheduler.handle(.credentialsChanged(["token"]), now: next)
        #expect(
            scheduler.nextTry(ofHeld: .auth, lane: nil) { scope }.map { $0 >= next + .seconds(300) } == true
        )
        _ = scheduler.handle(.stop, now: next)
        #expect(scheduler.handle(.wake, now: next + .seconds(7200)).isEmpty)
    }
}
