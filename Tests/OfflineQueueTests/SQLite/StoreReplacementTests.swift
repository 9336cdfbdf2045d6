internal import Foundation
internal import OfflineQueue
internal import Testing

/// Replaced requests that are in flight or that other requests depend on.
@Suite struct StoreReplacementTests {
    private let directory = TemporaryDirectory()
    private let clock = TestStoreClock()

    @Test func `a batch may replace one of its own requests that depends on a later one`() async throws {
        let store = try await directory.openStore(clock: clock)
        let batch = [
            try new("early") { ($0.replaceKey, $0.dependencies) = ("key", ["part"]) },
            try new("part"),
            try new("late") { $0.replaceKey = "key" },
        ]
        _ = try await store.enqueue(batch)
        #expect(try await store.states() == ["early": .superseded, "part": .pending, "late": .pending])
        _ = try await store.enqueue(try new("next"))
    }

    @Test func `a replacement that depends on a dependent of the replaced request causes no cycle`()
        async throws
    {
        let store = try await directory.openStore(clock: clock)
        _ = try await store.enqueue(
            try new("old") { $0.replaceKey = "key" },
            try new("waiting") { $0.dependencies = ["old"] }
        )
        _ = try await store.enqueue(
            try new("new") { ($0.replaceKey, $0.dependencies) = ("key", ["part"]) },
            try new("part") { $0.dependencies = ["waiting"] }
        )
        // A held request is visible to users. If it were blocked, the three requests would wait for one another
        // forever.
        #expect(try await store.state(of: "waiting") == .held)
    }

    @Test func `a FIFO request that depends on a replaced request does not wait for a later one of its lane`()
        async throws
    {
        let store = try await directory.openStore(clock: clock)
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

    @Test func `the details of a superseded request name the one that replaced it`() async throws {
        let store = try await directory.openStore(clock: clock)
        for (id, host) in [("a", "one"), ("other", "two"), ("b", "one")] {
            _ = try await store.enqueue(try new(id, host: host) { $0.replaceKey = "key" })
        }
        let lane = try await store.enqueue(try new("c", host: "one") { $0.replaceKey = "key" })[0].lane.id
        func successors() async throws -> [String?] {
            var found: [String?] = []
            for id in ["a", "b", "c", "other"] { found.append(try await store.details(of: id)?.replacedBy) }
            return found
        }
        #expect(try await successors() == ["b", "c", nil, nil])
        let sent = try #require(try await store.claim(of: lane).requests.first)
        #expect(try await successors() == ["b", "c", nil, nil])
        try await store.conclude(sent, .delivered(status: 200))
        #expect(try await successors() == ["b", "c", nil, nil])
    }

    @Test func `a request that was itself replaced before is not named as the replacement of an older one`()
        async throws
    {
        let store = try await directory.openStore(clock: clock)
        let lane = try await store.enqueue(try new("a") { $0.replaceKey = "key" })[0].lane.id
        let sent = try #require(try await store.claim(of: lane).requests.first)
        for id in ["b", "c"] { _ = try await store.enqueue(try new(id) { $0.replaceKey = "key" }) }
        clock.advance(.seconds(1))
        try await store.conclude(sent, .retry(countsAsAttempt: true))
        #expect(try await store.states() == ["a": .superseded, "b": .superseded, "c": .pending])
        #expect(try await store.details(of: "a")?.replacedBy == "c")
        #expect(try await store.details(of: "b")?.replacedBy == "c")
    }

    @Test func `a request that was enqueued after the replacement is not named instead of a forgotten one`()
        async throws
    {
        var settings = StoreSettings()
        settings.retention.doneCount = 1
        let store = try await directory.openStore(settings, clock: clock)
        _ = try await store.enqueue(try new("a") { $0.replaceKey = "key" })
        for (id, key) in [("b", "key"), ("last", "other")] {
            let lane = try await store.enqueue(try new(id) { $0.replaceKey = key })[0].lane.id
            try await store.conclude(try await store.claim(1, of: lane).requests[0], .delivered(status: 200))
            clock.advance(.seconds(1))
        }
        #expect(try await store.details(of: "a")?.replacedBy == "b")
        _ = try await store.expire()
        _ = try await store.enqueue(try new("c") { $0.replaceKey = "key" })
        #expect(try await store.details(of: "b") == nil)
        #expect(try await store.details(of: "a")?.replacedBy == nil)
    }

    @Test func `an older request is not sent after the one that replaces it was delivered`() async throws {
        let store = try await directory.openStore(clock: clock)
        let lane = try await store.enqueue(try new("old") { $0.replaceKey = "key" })[0].lane.id
        let old = try #require(try await store.claim(of: lane).requests.first)
        _ = try await store.enqueue(try new("new") { $0.replaceKey = "key" })
        #expect(try await store.claim(of: lane).requests.isEmpty)
        try await store.conclude(old, .retry(countsAsAttempt: true))
        #expect(try await store.claim(of: lane).requests.map(\.id) == ["new"])
    }
}
