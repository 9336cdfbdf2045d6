internal import Testing

@testable internal import OfflineQueue

@Suite struct RetryBudgetTests {
    /// Returns a budget after first attempts at the time 0.
    private func budget(firstAttempts: Int = 0) -> RetryBudget {
        var budget = RetryBudget(limits: .init())
        budget.record(RetryUse(of: nil, taken: firstAttempts, retries: 0), now: .zero)
        return budget
    }

    /// Takes as many retries as are permitted.
    private func take(_ budget: inout RetryBudget, at now: Moment) -> Int {
        let allowance = budget.reserve(1000, now: now)
        budget.record(RetryUse(of: allowance, taken: allowance.count, retries: allowance.count), now: now)
        return allowance.count
    }

    @Test func `retries are a fifth of the first attempts within 10 s, and one per second`() {
        var idle = budget()
        #expect(take(&idle, at: .zero) == 10)
        #expect(take(&idle, at: .seconds(9)) == 0)
        #expect(take(&idle, at: .seconds(10)) == 10)
        var busy = budget(firstAttempts: 100)
        #expect(take(&busy, at: .seconds(1)) == 30)
        #expect(take(&busy, at: .seconds(10)) == 0, "the first attempts are older than 10 s")
        #expect(take(&busy, at: .seconds(11)) == 10)
    }

    @Test func `a retry that succeeds does not count`() {
        var budget = budget()
        #expect(take(&budget, at: .seconds(1)) == 10)
        budget.retrySucceeded(began: .milliseconds(500))
        #expect(take(&budget, at: .seconds(2)) == 0, "no retry began before that time")
        for _ in 0..<3 { budget.retrySucceeded(began: .milliseconds(1500)) }
        #expect(take(&budget, at: .seconds(2)) == 3)
        #expect(take(&budget, at: .seconds(11)) == 7)
    }

    @Test func `retries that a claim did not use are available again`() {
        var budget = budget()
        let first = budget.reserve(8, now: .zero)
        #expect(first.count == 8 && budget.reserve(8, now: .zero).count == 2)
        budget.record(RetryUse(of: first, taken: 5, retries: 1), now: .zero)
        #expect(budget.reserve(100, now: .zero).count == 7)
    }

    @Test func `the retry of a lane that finds out whether its server responds is permitted, and counts`() {
        var budget = budget()
        for _ in 0..<8 { budget.record(RetryUse(of: nil, taken: 1, retries: 1), now: .zero) }
        #expect(take(&budget, at: .zero) == 2)
        budget.record(RetryUse(of: nil, taken: 4, retries: 4), now: .zero)
        #expect(take(&budget, at: .seconds(9)) == 0)
        #expect(take(&budget, at: .seconds(10)) == 10)
    }

    @Test func `a claim that may take no retry names the time at which one is permitted`() {
        var budget = budget()
        #expect(take(&budget, at: .milliseconds(1500)) == 10)
        let refused = budget.reserve(1, now: .seconds(4))
        #expect(refused.count == 0 && refused.wait == .seconds(7))
        #expect(budget.reserve(1, now: .seconds(4) + refused.wait).count == 1)
    }

    @Test func `a minimum is reserved even if the budget is used up, and counts`() {
        var budget = budget()
        #expect(take(&budget, at: .zero) == 10)
        let requested = budget.reserve(8, atLeast: 1, now: .zero)
        #expect(requested.count == 1 && requested.wait > .zero)
        budget.record(RetryUse(of: requested, taken: 1, retries: 1), now: .zero)
        #expect(take(&budget, at: .seconds(9)) == 0)
    }

    // MARK: Lanes

    private static let lane = Scheduler.LaneInfo(id: 1, host: "a", mode: .parallel)

    /// Returns a scheduler that permits no retries, and has claimed the requests of one lane in vain.
    private static func scheduler(postponement: Duration) throws -> Scheduler {
        var settings = Scheduler.Settings()
        (settings.retryShare, settings.retryRate) = (0, 0)
        var scheduler = Scheduler(settings: settings, seed: 1)
        _ = scheduler.handle(.rows(lane, due: .zero), now: .zero)
        let found = scheduler.handle(.gate(.https("a"), .reachable(generation: 1)), now: .zero)
        let claim = try #require(found.firstClaim)
        #expect(claim.retries?.count == 0)
        let use = RetryUse(of: claim.retries, taken: 0, retries: 0, postponement: postponement)
        _ = scheduler.handle(.claimed(lane: 1, taken: 0, use: use, due: postponement), now: .zero)
        return scheduler
    }

    @Test func `a flush permits one retry of each lane although the budget is used up`() throws {
        var scheduler = try Self.scheduler(postponement: .seconds(9))
        let claim = try #require(scheduler.handle(.flush(.all), now: .seconds(1)).firstClaim)
        #expect(claim.retries?.count == 1)
        let use = RetryUse(of: claim.retries, taken: 1, retries: 1)
        let claimed = Scheduler.Event.claimed(lane: 1, taken: 1, use: use, due: .seconds(1))
        #expect(scheduler.handle(claimed, now: .seconds(1)).firstClaim?.retries?.count == 0)
    }

    @Test func `a released request permits one retry of its lane although the budget is used up`() throws {
        var scheduler = try Self.scheduler(postponement: .seconds(9))
        let rows = Scheduler.LaneRows(Self.lane, due: .seconds(1), isRequested: true)
        let claim = try #require(scheduler.handle(.lanes([rows]), now: .seconds(1)).firstClaim)
        #expect(claim.retries?.count == 1)
    }

    @Test func `the lane knows until when the budget has postponed its retries, until a flush`() throws {
        var scheduler = try Self.scheduler(postponement: .seconds(9))
        #expect(scheduler.isRetryPostponed(until: .seconds(9), lane: 1, now: .seconds(1)))
        #expect(!scheduler.isRetryPostponed(until: .seconds(11), lane: 1, now: .seconds(1)))
        #expect(!scheduler.isRetryPostponed(until: .seconds(9), lane: 1, now: .seconds(9)))
        _ = scheduler.handle(.flush(.all), now: .seconds(1))
        #expect(!scheduler.isRetryPostponed(until: .seconds(9), lane: 1, now: .seconds(1)))
    }
}
