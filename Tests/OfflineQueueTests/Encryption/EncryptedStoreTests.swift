internal import Foundation
internal import Testing

@testable internal import OfflineQueue

/// A store whose requests are encrypted.
@Suite(.timeLimit(.minutes(5))) struct EncryptedStoreTests {
    private let directory = TemporaryDirectory(marker: "encrypted")
    private let keys: TestKeys

    init() throws { keys = try TestKeys() }

    @Test func `no file of an encrypted queue contains a header value, a body, a key or a response`()
        async throws
    {
        let store = try await directory.openEncrypted(TestKeys.first, in: keys)
        try await Marked.fill(store)
        let upload = try store.spool.makeWriter(limit: 1 << 20)
        try await upload.append(Marked.spooled)
        #expect(
            try directory.found(Marked.texts) == [],
            "while the store is open, with the log and an upload"
        )
        #expect(try directory.found(["X-Note", "example.com"]) == ["example.com"], "URLs stay readable")
        await upload.discard()
        await store.close()
        #expect(try directory.found(Marked.texts) == [])
        // The same requests without encryption show that the search finds them.
        let plain = TemporaryDirectory()
        let readable = try await plain.openEncrypted(in: keys)
        try await Marked.fill(readable)
        #expect(try plain.found(Marked.texts) == Set(Marked.texts))
        await readable.close()
    }

    @Test func `an encrypted store returns the same values as a store without encryption`() async throws {
        let (clock, other) = (TestStoreClock(), TestStoreClock())
        let plain = TemporaryDirectory()
        let expected = try await plain.openStore(clock: other)
        let store = try await directory.openEncrypted(TestKeys.first, in: keys, clock: clock)
        try await EveryState.fill(expected, other)
        try await EveryState.fill(store, clock)
        #expect(try await store.allDetails() == expected.allDetails())
        for part in [ExportCursor.Part.waiting, .dead] {
            let cursor = ExportCursor(part: part, position: 0)
            let found = try await store.rows(after: cursor, bytes: 1 << 24).map {
                try $0.content.get().request
            }
            #expect(
                try await expected.rows(after: cursor, bytes: 1 << 24).map { try $0.content.get().request }
                    == found
            )
        }
        #expect(try await store.inspect().findings == [])
        #expect(try await store.statistics().encryption.map(\.requests) == [store.all().count])
        #expect(try await expected.statistics().encryption == [])
    }

    @Test func `enqueuing a stored request again is recognized, and other content is refused`() async throws {
        let store = try await directory.openEncrypted(TestKeys.first, in: keys)
        try await store.enqueue(try await Marked.request("a"))
        let again = try await store.enqueue(try await Marked.request("a"))
        #expect(again[0].outcome == .known && again[0].idempotencyKey == "key-7f3a")
        let other = try NewRequest(
            QueueRequest(method: "POST", url: "http://example.com/a", body: Data("inline-7f3b".utf8)),
            options: EnqueueOptions(id: "a"),
            body: .inline(Data("inline-7f3b".utf8)),
            now: start.date
        )
        let error = await #expect(throws: QueueError.self) { try await store.enqueue(other) }
        #expect(error?.code == .idConflict && error?.message.contains("differs in: headers, body;") == true)
        // The bodies have the same length, and the hash of the deleted one is encrypted.
        let sent = try #require(try await store.claimAll().first)
        try await store.conclude(sent, .delivered(status: 200), response: Marked.response)
        let late = await #expect(throws: QueueError.self) { try await store.enqueue(other) }
        #expect(late?.message.contains("differs in: headers, body;") == true)
        #expect(try await store.enqueue(try await Marked.request("a"))[0].outcome == .known)
        let digest = try SHA256.digest(of: Data("inline-7f3a".utf8)).description
        #expect(try directory.found([digest]) == [])
    }

    @Test func `a retry with a new key stores that key encrypted`() async throws {
        let store = try await directory.openEncrypted(TestKeys.first, in: keys)
        try await store.enqueue(try await Marked.request("a"))
        _ = try await store.edit(.retry(newKey: true), ["a"])
        let key = try #require(try await store.claimAll().first?.key?.value)
        #expect(key != "key-7f3a" && key.utf8.count == 36)
        #expect(try directory.found([key]) == [])
    }
}
