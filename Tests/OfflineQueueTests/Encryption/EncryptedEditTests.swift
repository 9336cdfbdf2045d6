internal import Foundation
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

/// Changes of encrypted requests that read or write their encrypted values.
@Suite(.timeLimit(.minutes(5))) struct EncryptedEditTests {
    private let directory = TemporaryDirectory(marker: "encrypted-edit")
    private let keys: TestKeys

    init() throws { keys = try TestKeys() }

    private func request(_ id: String, tag: String? = nil) throws -> NewRequest {
        var options = EnqueueOptions(id: id)
        options.tag = tag
        let body = Data("body".utf8)
        return try NewRequest(
            QueueRequest(
                method: "POST",
                url: "http://example.com/\(id)",
                headers: [QueueRequest.Header(name: "X-Note", value: "note")],
                body: body
            ),
            options: options,
            body: .inline(body),
            now: start.date
        )
    }

    private func stored(_ ids: String..., tag: String? = nil) async throws -> SQLiteQueueStore {
        let store = try await directory.openEncrypted(TestKeys.first, in: keys)
        for id in ids { try await store.enqueue(try request(id, tag: tag)) }
        return store
    }

    @Test func `a store that was only read with a key still accepts requests without one`() async throws {
        await (try await directory.openEncrypted(in: keys)).close()
        let read = try await directory.openEncrypted(TestKeys.first, in: keys)
        #expect(try await read.all().isEmpty)
        await read.close()
        let plain = try await directory.openEncrypted(in: keys)
        #expect(try await plain.enqueue(try request("a"))[0].outcome == .accepted)
    }

    @Test func `a retry of many requests with new keys leaves each of them readable`() async throws {
        let store = try await stored("a", "b")
        let old = try await store.allDetails().compactMap(\.idempotencyKey)
        let retried = try await store.edit(
            .retry(newKey: true),
            matching: RequestFilter(states: [.pending]),
            isDryRun: false
        )
        #expect(retried.result.done == 2)
        let sent = try await store.claimAll().compactMap(\.key?.value)
        #expect(sent.count == 2 && Set(sent + old).count == 4)
        #expect(try directory.found(sent) == [])
    }

    @Test func `a refused retry with a new key changes nothing`() async throws {
        let first = try await stored("a")
        _ = try await first.edit(.hold, ["a"])
        await first.close()
        let locked = try await directory.openEncrypted(in: keys)
        let error = await #expect(throws: QueueError.self) {
            try await locked.edit(.retry(newKey: true), ["a"])
        }
        #expect(error?.code == .encryptionKeyMissing)
        #expect(try await locked.all().map(\.holdReason) == [.user])
    }

    @Test func `repeating a request that cannot be decrypted is refused, and the store continues`()
        async throws
    {
        await (try await stored("a")).close()
        let both = try await directory.openEncrypted(TestKeys.second, TestKeys.first, in: keys)
        try await both.enqueue(try request("c"))
        await both.close()
        let other = try await directory.openEncrypted(TestKeys.second, in: keys)
        let again = try request("a")
        let error = await #expect(throws: QueueError.self) { try await other.enqueue(again) }
        #expect(error?.code == .encryptionKeyMissing)
        #expect(try await other.enqueue(try request("b"))[0].outcome == .accepted)
    }

    @Test func `a new credential removes the secrets of an encrypted request, and keeps the rest`()
        async throws
    {
        let plain = try await directory.openEncrypted(in: keys)
        try await plain.enqueue(try request("a"))
        await plain.close()
        // As a version without credentials stored it.
        try edit(directory, "UPDATE request SET url = url || '?access_token=hush'")
        let store = try await directory.openEncrypted(TestKeys.first, in: keys)
        try await store.resealAll()
        #expect(try await store.setCredential("api", of: ["a"]) == [.done(.pending)])
        let sent = try #require(try await store.claimAll().first)
        #expect(sent.url == "http://example.com/a")
        #expect(sent.headers.map(\.value).contains("note"))
    }

    @Test func `an encrypted request can be sent with its new credential`() async throws {
        let store = try await stored("a")
        #expect(try await store.setCredential("api", of: ["a"]) == [.done(.pending)])
        #expect(try await store.inspect().findings == [])
        let sent = try #require(try await store.claimAll().first)
        #expect(sent.options.credential == "api" && sent.headers.map(\.value) == ["note"])
    }

    @Test(arguments: [QueueEdit.release, .cancel, .hold])
    func `after a hold for the key, the last error is that of the last attempt`(edit: QueueEdit) async throws
    {
        let first = try await directory.openEncrypted(TestKeys.first, in: keys)
        var options = EnqueueOptions(id: "a")
        options.onDone = Webhook(url: "http://done.example/")
        let url = QueueRequest(method: "PUT", url: "http://example.com/a")
        try await first.enqueue(try NewRequest(url, options: options, now: start.date))
        let claimed = try #require(try await first.claimAll().first)
        let attempt = AttemptRecord(duration: .zero, curlCode: 0)
        try await first.conclude(claimed, .retry(countsAsAttempt: true), detail: "HTTP 503", attempt: attempt)
        await first.close()
        let locked = try await directory.openEncrypted(in: keys)
        #expect(try await locked.claimAll().isEmpty)
        #expect(try await locked.details(of: "a")?.summary.lastError?.contains("is missing") == true)
        guard edit != .release else {
            await locked.close()
            let right = try await directory.openEncrypted(TestKeys.first, in: keys)
            _ = try await right.edit(edit, ["a"])
            return #expect(try await right.details(of: "a")?.summary.lastError == "HTTP 503")
        }
        let filter = RequestFilter(states: [.held])
        #expect(try await locked.edit(edit, matching: filter, isDryRun: false).result.done == 1)
        #expect(try await locked.details(of: "a")?.summary.lastError == "HTTP 503")
        let webhooks = try await locked.claimAll()
        #expect(webhooks.count == (edit == .cancel ? 1 : 0))
        for webhook in webhooks {
            guard case .inline(let body) = webhook.body else { return #expect(Bool(false), "not inline") }
            #expect(String(decoding: body, as: UTF8.self).contains("\"reason\":\"HTTP 503\""))
        }
        await locked.close()
    }

    @Test func `a completion waits for the key of its request`() async throws {
        let first = try await stored("a", tag: "t")
        let claimed = try #require(try await first.claimAll().first)
        let response = RecordedResponse(
            status: 200,
            headers: [],
            body: Data("reply".utf8),
            isTruncated: false
        )
        try await first.conclude(claimed, .delivered(status: 200), response: response)
        await first.close()

        let wrong = try await directory.openEncrypted(TestKeys.second, in: keys)
        #expect(try await wrong.completion(of: "t", after: 0) == nil)
        #expect(try await wrong.statistics().completions.map(\.count) == [1])
        await wrong.close()

        let right = try await directory.openEncrypted(TestKeys.second, TestKeys.first, in: keys)
        let completion = try #require(try await right.completion(of: "t", after: 0))
        #expect(completion.request.response?.body == Data("reply".utf8))
    }

    @Test func `requests whose key is still missing stay held at a restart`() async throws {
        await (try await stored("a")).close()
        let wrong = try await directory.openEncrypted(TestKeys.second, in: keys)
        #expect(try await wrong.claimAll().isEmpty)
        _ = try await wrong.recover(releasing: HoldReason.releasableByRestart)
        #expect(try await wrong.all().map(\.holdReason) == [.key])
    }
}
