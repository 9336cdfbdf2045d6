internal import ClientCore
internal import Foundation
internal import Testing

@testable internal import OfflineQueue

/// Signed URLs, such as presigned URLs of S3, which are stored only on demand.
@Suite struct SignedURLTests {
    private let directory = TemporaryDirectory(marker: "signed-url")
    private let second = TemporaryDirectory(marker: "signed-url-2")
    private let files = TemporaryDirectory(marker: "signed-url-files")
    private let url =
        "https://bucket.example/key?X-Amz-Expires=60&X-Amz-Signature=hush&X-Amz-Security-Token=hush"

    private func new(_ url: String, credential: String? = nil, allows: Bool = true) throws(QueueError)
        -> NewRequest
    {
        var options = EnqueueOptions(id: "a")
        options.allowsSignature = allows
        options.credential = credential
        return try NewRequest(QueueRequest(method: "PUT", url: url), options: options)
    }

    @Test(arguments: [
        "X-Amz-Signature", "x-amz-security-token", "X-Goog-Signature", "sig", "signature", "s%69g",
        "security-token", "x-oss-signature", "x-oss-security-token", "q-signature", "x-cos-security-token",
        "x-obs-security-token",
    ])
    func `a signed URL is accepted only with the option`(item: String) throws {
        let url = "https://bucket.example/key?a=1&\(item)=hush"
        #expect(try new(url).url == url)
        let refusal = #expect(throws: QueueError.self) { try new(url, allows: false) }
        #expect(refusal?.message.contains("`--allow-signature`") == true, "\(refusal as Any)")
        #expect(refusal?.message.contains("hush") == false)
        #expect(SecretQueryItems.isSigned(url))
        // A webhook has no such option.
        var options = EnqueueOptions()
        options.onDone = Webhook(url: url)
        options.allowsSignature = true
        let request = QueueRequest(method: "PUT", url: "https://a.example/")
        let webhook = #expect(throws: QueueError.self) { try NewRequest(request, options: options) }
        #expect(webhook?.message.contains("is refused: the queue stores no secrets") == true)
        #expect(webhook?.message.contains("allow") == false, "\(webhook as Any)")
    }

    @Test(arguments: ["token", "api_key", "password"])
    func `the option accepts no other secret`(item: String) {
        #expect(throws: QueueError.self) { try new("\(url)&\(item)=hush") }
        #expect(!SecretQueryItems.isSigned("https://bucket.example/key?\(item)=hush"))
    }

    @Test func `the option cannot be combined with a credential`() {
        let refusal = #expect(throws: QueueError.self) { try new(url, credential: "api") }
        #expect(refusal?.code == .invalidOption)
    }

    @Test func `a signed URL is sent as it is, and no report or export shows its signature`() async throws {
        let store = try await SQLiteQueueStore(directory: directory.path)
        let lane = try await store.enqueue([try new(url)])[0].lane.id
        let shown =
            "https://bucket.example/key?X-Amz-Expires=60&X-Amz-Signature=REDACTED&X-Amz-Security-Token=REDACTED"
        #expect(try await store.details(of: "a")?.summary.url == shown)
        let rows = try await store.archive.rows(after: .beginning, bytes: 1 << 20)
        let archived = try #require(rows.first).content.get().request
        #expect(archived.url == "https://bucket.example/key?X-Amz-Expires=60" && archived.state == .held)
        let sent = try #require(try await store.claim(1, of: lane).requests.first)
        #expect(sent.url == url)
        #expect(try await store.enqueue([try new(url)])[0].outcome == .known, "the same request again")
        #expect(try await store.conclude(sent, .delivered(status: 200)))
        #expect(try await store.details(of: "a")?.summary.url == shown)
        await store.close()
    }

    @Test(
        arguments: [
            (nil, HoldReason.user), (.trust, .user), (.configuration, .user), (.auth, .user), (.key, .user),
            (.user, .user), (.ambiguous, .ambiguous),
        ] as [(HoldReason?, HoldReason)]
    )
    func `without its signature, an imported request is held until a user releases it`(
        before: HoldReason?,
        after: HoldReason
    ) async throws {
        let store = try await SQLiteQueueStore(directory: directory.path)
        _ = try await store.enqueue([try new(url)])
        await store.close()
        if let before {
            let sql = "UPDATE request SET state = 'held', hold_reason = '\(before.rawValue)'"
            try edit(directory, sql)
        }
        let export = try await withQueue(directory) { queue, _ in try await queue.exported() }
        let path = try file(export, in: files)
        try await withQueue(second) { queue, store in
            #expect(try await queue.importRequests(from: path).imported == 1)
            try await queue.credentialsChanged(["api"])
            let releasing = HoldReason.releasableByRestart
            for lane in try await store.restart(releasing: releasing) {
                #expect(try await store.claim(8, of: lane.id, releasing: releasing).requests.isEmpty)
            }
            let found = try #require(try await queue.request("a")).summary
            #expect(found.state == .held && found.holdReason == after)
            guard after == .user, before != .user else { return }
            #expect(found.lastError?.contains("exports contain no signatures") == true)
        }
    }
}
