internal import Foundation
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

/// Requests that another version stored, or whose row was changed: what they ask for is not ignored.
@Suite struct StoredFormTests {
    private let directory = TemporaryDirectory(marker: "stored-form")

    /// Returns the SQL that gives requests constraints, and their lane, unless a condition selects the requests.
    private static func constraints(_ text: String, _ condition: String? = nil) -> String {
        let requests = "UPDATE request SET options = json_set(options, '$.constraints', '\(text)')"
        guard let condition else { return "\(requests); UPDATE lane SET lane_constraints = '\(text)'" }
        return "\(requests) WHERE \(condition)"
    }

    /// Stores requests, and changes the database while it is closed.
    private func store(_ ids: [String], window: String? = nil, then sql: String) async throws
        -> SQLiteQueueStore
    {
        let first = try await SQLiteQueueStore(directory: directory.path)
        for id in ids {
            var options = EnqueueOptions(id: id)
            options.maximumAttempts = 1
            options.constraints.window = try window.map { text throws(QueueError) in
                try DailyWindow(parsing: text)
            }
            let request = QueueRequest(method: "POST", url: "http://example.com/a")
            _ = try await first.enqueue([try NewRequest(request, options: options)])
        }
        await first.close()
        try edit(directory, sql)
        return try await SQLiteQueueStore(directory: directory.path)
    }

    private func claimed(_ store: SQLiteQueueStore, releasing: Set<HoldReason> = []) async throws -> [String]
    {
        var ids: [String] = []
        for lane in try await store.restart(releasing: releasing) {
            ids += try await store.claim(8, of: lane.id).requests.map(\.id)
        }
        return ids
    }

    @Test(
        arguments: [
            ("window=22:00-06:00 Mars/Base", "`Mars/Base` is not a time zone"),
            ("interface=ethernet,satellite", "`satellite` is not a kind of interface"),
            ("unmetered; below=5", "`below=5` is not a constraint"),
        ]
    )
    func `a request with a constraint that cannot be evaluated is held with the reason, and not sent`(
        text: String,
        reason: String
    ) async throws {
        let store = try await store(
            ["a"],
            then: Self.constraints(text)
        )
        #expect(try await claimed(store).isEmpty)
        let details = try #require(try await store.details(of: "a"))
        #expect(details.summary.state == .held && details.summary.holdReason == .configuration)
        #expect(details.summary.attempts == 0)
        #expect(details.summary.lastError?.contains(reason) == true, "\(details.summary.lastError ?? "")")
        #expect(details.options.constraints.description == text, "it is shown as it was stored")
        // A restart releases the request, which is held again as long as the cause exists.
        #expect(try await claimed(store, releasing: [.configuration]).isEmpty)
        await store.close()
        try edit(directory, Self.constraints("unmetered"))
        let repaired = try await SQLiteQueueStore(directory: directory.path)
        #expect(try await claimed(repaired, releasing: [.configuration]) == ["a"])
        await repaired.close()
    }

    @Test func `such a request is sound, is part of exports and salvages, and is held after an import`()
        async throws
    {
        let text = "unmetered; below=5"
        try await store(["a"], then: Self.constraints(text)).close()
        let export = try await withQueue(directory) { queue, _ in
            #expect(try await queue.verify().findings.isEmpty)
            return try await queue.exported()
        }
        let salvage = try await Salvager(directory: directory.path).run()
        #expect(salvage.waiting == 1 && salvage.lostCount == 0)
        for path in [try file(export, in: directory, "other-export"), salvage.path] {
            let second = TemporaryDirectory(marker: "stored-form-2")
            try await withQueue(second) { queue, store in
                #expect(try await queue.importRequests(from: path).imported == 1)
                #expect(try await claimed(store).isEmpty)
                let details = try #require(try await queue.request("a"))
                #expect(details.summary.holdReason == .configuration)
                #expect(details.options.constraints.description == text)
            }
        }
    }

    @Test func `only the request with such a constraint is held`() async throws {
        let store = try await store(
            ["a", "b"],
            then: "\(Self.constraints("window=22:00-06:00 Mars/Base", "id = 'a'"))"
        )
        #expect(try await claimed(store) == ["b"])
        await store.close()
    }

    @Test func `a new credential corrects the size of a request from which it removes secrets`() async throws
    {
        let store = try await store(
            ["a", "b"],
            then: """
                UPDATE request SET url = url || '?access_token=hush', size = size + 18 WHERE id = 'a';
                UPDATE lane SET bytes = bytes + 18; UPDATE meta SET bytes = bytes + 18
                """
        )
        let before = try await store.statistics().bytes
        #expect(try await store.setCredential("api", of: ["a"]) == [.done(.pending)])
        #expect(try await store.statistics().bytes == before - 18)
        for id in ["a", "b"] { _ = try await store.edit(.cancel, [id]) }
        #expect(try await store.statistics().bytes == 0)
        await store.close()
    }

    @Test func `an export contains no secrets, and says that they are missing`()
        async throws
    {
        let store = try await store(
            ["a"],
            then: "UPDATE request SET url = url || '?access_token=hush'"
        )
        let rows = try await store.archive.rows(after: .beginning, bytes: 1 << 20)
        let archived = try #require(rows.first).content.get().request
        #expect(archived.url == "http://example.com/a")
        #expect(archived.state == .held && archived.holdReason == HoldReason.auth.rawValue)
        #expect(archived.lastError?.contains("give it a credential") == true)
        await store.close()
    }

    @Test func `attempts without a usable credential do not use up the maximum number of attempts`()
        async throws
    {
        let store = try await store(["a"], then: "")
        let lane = try #require(try await store.restart().first?.id)
        for _ in 0..<3 {
            let request = try #require(
                try await store.claim(1, of: lane, releasing: [.auth]).requests.first
            )
            #expect(try await store.conclude(request, .held(.auth)))
            let held = try #require(try await store.details(of: "a")).summary
            #expect(held.holdReason == .auth && held.attempts == 0)
        }
        let last = try #require(try await store.claim(1, of: lane, releasing: [.auth]).requests.first)
        #expect(try await store.conclude(last, .retry(countsAsAttempt: true)))
        #expect(try await store.details(of: "a")?.summary.state == .dead, "one attempt is permitted")
        await store.close()
    }
}
