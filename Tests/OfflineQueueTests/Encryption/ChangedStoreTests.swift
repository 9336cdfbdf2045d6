internal import Foundation
internal import Testing

@testable internal import OfflineQueue

/// A store with values that were changed without its key.
@Suite(.timeLimit(.minutes(5))) struct ChangedStoreTests {
    private let directory = TemporaryDirectory(marker: "encrypted")
    private let keys: TestKeys

    init() throws { keys = try TestKeys() }

    @Test func `values that were exchanged between requests are detected`() async throws {
        let store = try await directory.openEncrypted(TestKeys.first, in: keys)
        for id in ["a", "b", "c"] { try await store.enqueue(try await Marked.request(id)) }
        await store.close()
        try edit(
            directory,
            "UPDATE request SET content = (SELECT content FROM request WHERE id = 'b') WHERE id = 'a'"
        )
        let changed = try await directory.openEncrypted(TestKeys.first, in: keys)
        #expect(Set(try await changed.claimAll().map(\.id)) == ["b", "c"])
        let held = try #require(try await changed.details(of: "a")).summary
        #expect(held.holdReason == .key)
        let reason = try #require(held.lastError)
        #expect(
            reason.contains("header fields do not match the request") && reason.contains("cancel the request")
        )
        let findings = try await changed.inspect().findings
        #expect(findings.map(\.kind) == [.request] && findings.map(\.subject) == ["a"])
        await changed.close()
    }

    @Test(arguments: [
        "url = 'http://evil.example/a'", "method = 'PUT'", "credential = 'other'",
        "is_repeatable = 1 - is_repeatable", "body_bytes = 3", "key_id = NULL",
    ])
    func `a request is held if a value was changed that decides what is sent and where`(change: String)
        async throws
    {
        let store = try await directory.openEncrypted(TestKeys.first, in: keys)
        try await store.enqueue(try await Marked.request("a"), try await Marked.request("b"))
        await store.close()
        try edit(directory, "UPDATE request SET \(change) WHERE id = 'a'")
        let changed = try await directory.openEncrypted(TestKeys.first, in: keys)
        #expect(try await changed.claimAll().map(\.id) == ["b"])
        #expect(try await changed.details(of: "a")?.summary.holdReason == .key)
        let report = try await changed.inspect()
        #expect(report.findings.map(\.subject) == ["a"] && report.isDamaged)
        await changed.close()
    }

    @Test(arguments: [[], [TestKeys.first]])
    func `a changed body in the database is found, and not exported`(names: [String]) async throws {
        let open = { try await directory.openStore(key: names.first, in: keys) }
        let store = try await open()
        try await store.enqueue(try await Marked.request("a"), try await Marked.request("b"))
        #expect(try await store.inspect().findings == [])
        await store.close()
        try edit(directory, "UPDATE body SET bytes = zeroblob(length(bytes)) WHERE seq = 1")
        let changed = try await open()
        let report = try await changed.inspect()
        #expect(report.findings.map(\.kind) == [.request] && report.findings.map(\.subject) == ["a"])
        let rows = try await changed.rows(after: ExportCursor(part: .waiting, position: 0), bytes: 1 << 20)
        #expect(rows.compactMap { try? $0.content.get() }.map(\.request.id) == ["b"])
        await changed.close()
    }

    @Test(arguments: [[], [TestKeys.first]])
    func `a request whose stored body was removed is not sent without it`(names: [String]) async throws {
        let store = try await directory.openStore(key: names.first, in: keys)
        try await store.enqueue(try await Marked.request("a"))
        await store.close()
        try edit(directory, "DELETE FROM body")
        let changed = try await directory.openStore(key: names.first, in: keys)
        #expect(try await changed.claimAll().map(\.body) == [.unreadable])
        await changed.close()
    }
}
