internal import Foundation
internal import OfflineQueue
internal import Testing

/// Cases in which the store's guarantees are hard to keep.
@Suite struct ReviewStoreTests {
    private let directory = TemporaryDirectory()
    private let clock = TestStoreClock()

    private func open(_ settings: StoreSettings = StoreSettings()) async throws -> SQLiteQueueStore {
        try await SQLiteQueueStore(directory: directory.path, settings: settings, clock: clock.clock)
    }

    @Test func `a batch may replace one of its own requests that depends on a later one`() async throws {
        let store = try await open()
        let batch = [
            try new("early") { ($0.replaceKey, $0.dependencies) = ("key", ["part"]) },
            try new("part"),
            try new("late") { $0.replaceKey = "key" },
        ]
        _ = try await store.enqueue(batch)
        #expect(try await store.states() == ["early": .superseded, "part": .pending, "late": .pending])
        _ = try await store.enqueue(try new("next"))
    }

    @Test func `a dependent of a replaced request does not depend on itself through a later one`()
        async throws
    {
        let store = try await open()
        _ = try await store.enqueue(
            try new("old") { $0.replaceKey = "key" },
            try new("waiting") { $0.dependencies = ["old"] }
        )
        _ = try await store.enqueue(
            try new("new") { ($0.replaceKey, $0.dependencies) = ("key", ["part"]) },
            try new("part") { $0.dependencies = ["waiting"] }
        )
        // Held and thus visible. Otherwise, the three requests would wait for each other forever.
        #expect(try await store.state(of: "waiting") == .held)
    }

    @Test func `a dependent of a replaced request does not wait for a later one of its FIFO lane`()
        async throws
    {
        let store = try await open()
        _ = try await store.enqueue(
            try new("old", host: "other") { $0.replaceKey = "key" },
            try new("waiting", isFIFO: true) { $0.dependencies = ["old"] },
            try new("behind", isFIFO: true)
        )
        _ = try await store.enqueue(
            try new("new", host: "other") { ($0.replaceKey, $0.dependencies) = ("key", ["behind"]) }
        )
        #expect(try await store.state(of: "waiting") == .held)
    }

    @Test func `the history is reduced to its limit`() async throws {
        var settings = StoreSettings()
        settings.retention.doneCount = 10
        let store = try await open(settings)
        _ = try await store.enqueue((0..<600).map { try new("\($0)") })
        _ = try await store.edit(.cancel, (0..<600).map { "\($0)" })
        while try await store.expire() == .zero {}
        #expect(try await store.counts()[.cancelled] == 10)
    }

    @Test func `dead requests without bodies count against the limit of the history`() async throws {
        var settings = StoreSettings()
        settings.retention.bytes = 1000
        let store = try await open(settings)
        let lane = try await store.enqueue((0..<100).map { try new("\($0)", method: "GET", body: "") })[0]
            .lane.id
        for request in try await store.claim(100, of: lane).requests {
            try await store.conclude(request, .dead(reason: "HTTP 404"), status: 404)
        }
        while try await store.expire() == .zero {}
        #expect(try await store.counts()[.dead] < 60)
    }

    @Test func `one claim gives up a limited number of expired requests`() async throws {
        let store = try await open()
        let requests = try (0..<600).map { try new("\($0)") { $0.timeToLive = .seconds(1) } }
        let lane = try await store.enqueue(requests)[0].lane.id
        clock.advance(.seconds(2))
        let batch = try await store.claim(8, of: lane)
        #expect(batch.requests.isEmpty)
        #expect(try await store.counts()[.dead] < 600)
        #expect(batch.due == .zero)
    }

    @Test func `a retried request gets its full time to live again`() async throws {
        let store = try await open()
        _ = try await store.enqueue(try new("a") { $0.timeToLive = .seconds(100) })
        _ = try await store.edit(.hold, ["a"])
        clock.advance(.seconds(90))
        _ = try await store.edit(.retry(newKey: false), ["a"])
        clock.advance(.seconds(20))
        _ = try await store.expire()
        #expect(try await store.state(of: "a") == .pending)
    }

    @Test func `an older request is not sent after the one that replaces it was delivered`() async throws {
        let store = try await open()
        let lane = try await store.enqueue(try new("old") { $0.replaceKey = "key" })[0].lane.id
        let old = try #require(try await store.claim(of: lane).requests.first)
        _ = try await store.enqueue(try new("new") { $0.replaceKey = "key" })
        #expect(try await store.claim(of: lane).requests.isEmpty)
        try await store.conclude(old, .retry(countsAsAttempt: true))
        #expect(try await store.claim(of: lane).requests.map(\.id) == ["new"])
    }

    @Test func `limits may have the maximum integer values`() async throws {
        var settings = StoreSettings()
        (settings.limits.requests, settings.limits.bytes, settings.limits.laneShare) = (.max, .max, 1)
        let store = try await open(settings)
        _ = try await store.enqueue(try new("a"))
        #expect(try await store.state(of: "a") == .pending)
    }
}
