internal import Foundation
internal import Testing

@testable internal import OfflineQueue

/// Signed URLs, such as presigned URLs of S3, which are stored only on demand.
@Suite struct SignedURLTests {
    private let directory = TemporaryDirectory(marker: "signed-url")
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
    ])
    func `a signed URL is accepted only with the option`(item: String) throws {
        let url = "https://bucket.example/key?a=1&\(item)=hush"
        #expect(try new(url).url == url)
        let refusal = #expect(throws: QueueError.self) { try new(url, allows: false) }
        #expect(refusal?.message.contains("the option to allow a signed URL") == true, "\(refusal as Any)")
        #expect(refusal?.message.contains("hush") == false)
    }

    @Test(arguments: ["token", "api_key", "password"])
    func `the option accepts no other secret`(item: String) {
        #expect(throws: QueueError.self) { try new("\(url)&\(item)=hush") }
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
}
