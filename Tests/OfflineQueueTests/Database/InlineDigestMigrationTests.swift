internal import OfflineQueue
internal import Testing

/// The hashes of deleted inline bodies, which the schema stores since version 12.
@Suite struct InlineDigestMigrationTests {
    private let directory = TemporaryDirectory(marker: "migration")
    private let clock = TestStoreClock()

    /// Enqueues a request and delivers it, so that its body is deleted.
    private func deliver(_ id: String, _ body: String, in store: SQLiteQueueStore) async throws {
        let lane = try await store.enqueue(try new(id, body: body))[0].lane.id
        try await deliver(lane, in: store)
    }

    private func deliver(_ lane: Int64, in store: SQLiteQueueStore) async throws {
        let sent = try #require(try await store.claim(1, of: lane).requests.first)
        try #require(try await store.conclude(sent, .delivered(status: 200)))
    }

    /// Turns the store into one of version 11.
    private func removeDigests() throws {
        try edit(
            directory,
            OldSchema.withoutVersion14 + OldSchema.withoutVersion13 + OldSchema.withoutVersion12
        )
    }

    @Test func `a body that version 11 stored and deleted is compared by its length only`() async throws {
        let old = try await directory.openStore(clock: clock)
        try await deliver("old", "hello", in: old)
        try await old.enqueue(try new("waiting", host: "other", body: "hello"))
        await old.close()
        try removeDigests()
        let store = try await directory.openStore(clock: clock)
        #expect(try await store.pragma("user_version") == "14")
        #expect(try await store.enqueue(try new("old", body: "hallo"))[0].outcome == .known)
        #expect(await errorCode { try await store.enqueue(try new("old", body: "longer")) } == .idConflict)
        #expect(
            await errorCode { try await store.enqueue(try new("waiting", host: "other", body: "hallo")) }
                == .idConflict
        )
        try await deliver("new", "hello", in: store)
        #expect(await errorCode { try await store.enqueue(try new("new", body: "hallo")) } == .idConflict)
        #expect(try await store.enqueue(try new("new", body: "hello"))[0].outcome == .known)
        await store.close()
    }

    @Test(arguments: [QueueEdit.cancel, .retry(newKey: false)])
    func `the hash is kept when a request is cancelled or retried`(edit: QueueEdit) async throws {
        let store = try await directory.openStore(clock: clock)
        let lane = try await store.enqueue(try new("a", body: "hello"))[0].lane.id
        let sent = try #require(try await store.claim(of: lane).requests.first)
        try await store.conclude(sent, .dead(reason: "HTTP 410"))
        _ = try await store.edit(edit, ["a"])
        if edit != .cancel { try await deliver(lane, in: store) }
        #expect(await errorCode { try await store.enqueue(try new("a", body: "hallo")) } == .idConflict)
        #expect(try await store.enqueue(try new("a", body: "hello"))[0].outcome == .known)
        await store.close()
    }
}
