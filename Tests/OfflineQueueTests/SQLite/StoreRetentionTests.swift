internal import Foundation
internal import GRDB
internal import OfflineQueue
internal import Testing

/// The retention of finished requests, and the limits of a store.
@Suite struct StoreRetentionTests {
    private let directory = TemporaryDirectory()
    private let clock = TestStoreClock()

    @Test func `the history is reduced to its limit`() async throws {
        var settings = StoreSettings()
        settings.retention.doneCount = 10
        let store = try await directory.openStore(settings, clock: clock)
        _ = try await store.enqueue((0..<600).map { try new("\($0)") })
        _ = try await store.edit(.cancel, (0..<600).map { "\($0)" })
        while try await store.expire() == .zero {}
        #expect(try await store.counts()[.cancelled] == 10)
    }

    @Test func `dead requests without bodies count against the limit of the history`() async throws {
        var settings = StoreSettings()
        settings.retention.bytes = 1000
        let store = try await directory.openStore(settings, clock: clock)
        let lane = try await store.enqueue((0..<100).map { try new("\($0)", method: "GET", body: "") })[0]
            .lane.id
        for request in try await store.claim(100, of: lane).requests {
            try await store.conclude(request, .dead(reason: "HTTP 404"), status: 404)
        }
        while try await store.expire() == .zero {}
        #expect(try await store.counts()[.dead] < 60)
    }

    @Test func `requests with a damaged submitter are removed like those without one`() async throws {
        let first = try await directory.openStore(clock: clock)
        _ = try await first.enqueue(["a", "b"].map { try new($0) })
        _ = try await first.edit(.cancel, ["a", "b"])
        await first.close()
        let database = try DatabaseQueue(path: "\(directory.path)/queue.sqlite")
        try await database.write { try $0.execute(sql: "UPDATE history SET submitter = -1 WHERE id = 'a'") }
        try database.close()
        var settings = StoreSettings()
        settings.retention.bytes = 0
        let store = try await directory.openStore(settings, clock: clock)
        _ = try await store.expire()
        #expect(try await store.counts()[.cancelled] == 0)
    }

    @Test func `one claim gives up a limited number of expired requests`() async throws {
        let store = try await directory.openStore(clock: clock)
        let requests = try (0..<600).map { try new("\($0)") { $0.timeToLive = .seconds(1) } }
        let lane = try await store.enqueue(requests)[0].lane.id
        clock.advance(.seconds(2))
        let batch = try await store.claim(8, of: lane)
        #expect(batch.requests.isEmpty)
        #expect(try await store.counts()[.dead] < 600)
        #expect(batch.due == .zero)
    }

    @Test func `a retried request gets its full time to live again`() async throws {
        let store = try await directory.openStore(clock: clock)
        _ = try await store.enqueue(try new("a") { $0.timeToLive = .seconds(100) })
        _ = try await store.edit(.hold, ["a"])
        clock.advance(.seconds(90))
        _ = try await store.edit(.retry(newKey: false), ["a"])
        clock.advance(.seconds(20))
        _ = try await store.expire()
        #expect(try await store.state(of: "a") == .pending)
    }

    @Test func `limits may have the maximum integer values`() async throws {
        var settings = StoreSettings()
        (settings.limits.requests, settings.limits.bytes, settings.limits.laneShare) = (.max, .max, 1)
        let store = try await directory.openStore(settings, clock: clock)
        _ = try await store.enqueue(try new("a"))
        #expect(try await store.state(of: "a") == .pending)
    }
}
