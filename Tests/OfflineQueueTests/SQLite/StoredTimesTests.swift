internal import OfflineQueue
internal import Testing

/// The times in the rows of a store after a reboot.
@Suite struct StoredTimesTests {
    private let directory = TemporaryDirectory()
    private let clock = TestStoreClock()

    /// Writes every kind of row with a time: unfinished requests, a finished one, and a closed lane.
    private func fill(_ store: SQLiteQueueStore) async throws {
        let requests = [try new("waiting") { $0.timeToLive = .seconds(3600) }, try new("damaged")]
        _ = try await store.enqueue(requests)
        _ = try await store.enqueue(try new("finished"))
        _ = try await store.edit(.cancel, ["finished"])
        let lane = try await store.enqueue(try new("closed", host: "closed.example"))[0].lane.id
        let sent = try #require(try await store.claim(1, of: lane).requests.first)
        let retry = Verdict.retry(countsAsAttempt: true)
        try await store.conclude(sent, retry, delay: .seconds(20), laneClosure: .seconds(20))
    }

    @Test(arguments: [
        "request SET life = 0 WHERE id = 'damaged'",
        "request SET boot_expire_at = boot_expire_at + 86400000 WHERE id = 'damaged'",
        "request SET created_at = created_at + 86400000 WHERE id = 'damaged'",
        "history SET boot_finished_at = boot_finished_at + 86400000",
        "history SET finished_at = finished_at + 86400000",
        "lane SET boot_not_before = boot_not_before + 86400000 WHERE not_before IS NOT NULL",
        "lane SET not_before = not_before + 86400000 WHERE not_before IS NOT NULL",
    ])
    func `after a boot without synchronization, a damaged time of one row expires no other request`(
        change: String
    ) async throws {
        clock.setSynchronized(false)
        let store = try await directory.openStore(clock: clock)
        try await fill(store)
        await store.close()
        try edit(directory, "UPDATE \(change)")
        clock.reboot()
        let other = try await directory.openStore(clock: clock)
        clock.advance(.seconds(3599))
        _ = try await other.expire()
        #expect(try await other.state(of: "waiting") == .pending)
        clock.advance(.seconds(1))
        _ = try await other.expire()
        #expect(
            try await other.state(of: "waiting") == .dead,
            "the other rows have the time of the ended boot"
        )
    }

    @Test func `requests that are older than 1970 by a wrong clock can be read, and get their dates back`()
        async throws
    {
        let store = try await directory.openStore(clock: clock)
        try await fill(store)
        clock.advance(.seconds(60))
        let correct = clock.now.wall
        clock.setWall(Timestamp(milliseconds: 5000))
        _ = try await store.expire()
        #expect(try await store.archive.inspect().findings.isEmpty)
        #expect(try await creationTimes(store) == [0, 0, 0])
        clock.setWall(correct)
        _ = try await store.expire()
        #expect(try await creationTimes(store) == Array(repeating: start.milliseconds, count: 3))
        await store.close()
        try edit(directory, "UPDATE request SET created_at = -2000000000000000 WHERE id = 'damaged'")
        let other = try await directory.openStore(clock: clock)
        #expect(try await other.archive.inspect().findings.count == 1, "no clock moves a date that far")
    }

    /// Returns the creation times in an export of the unfinished requests, in milliseconds since 1970.
    private func creationTimes(_ store: SQLiteQueueStore) async throws -> [Int64] {
        let rows = try await store.archive.rows(
            after: ExportCursor(part: .waiting, position: 0),
            bytes: 1 << 20
        )
        return try rows.map { try $0.content.get().request.created }
    }
}
