internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import Testing

@testable internal import OfflineQueue

/// The same secrets in the texts of the client and of the queue.
@Suite(.timeLimit(.minutes(5))) struct RedactionTests {
    private let directory = TemporaryDirectory(marker: "redaction")

    private static let items = ["sig", "code", "sid", "session", "jwt", "pwd", "credential"]

    private static let others = [
        "user:hush@h.example/", "hush@h.example/", "h.example/?a=1;token=hush;hush&b=2",
        "h.example/?a=1#access_token=hush", "h.example/#/path?sid=hush",
    ]

    @Test(arguments: items.map { "h.example/?\($0)=hush" } + others)
    func `neither the client's nor the queue's texts show a secret of a URL`(rest: String) async throws {
        let url = "https://\(rest)"
        let session = SessionManager(configuration: .ephemeral)
        session.startRequestsImmediately = false
        let request = session.request(url)
        for text in [request.description, request.cURLDescription(redactingSecrets: true)] {
            #expect(text.contains("h.example/") && !text.contains("hush"), "\(text)")
        }
        request.cancel()
        let shown = try await shownByQueue(url)
        #expect(!shown.contains("hush"), "\(shown)")
    }

    /// Returns the URL in the queue's report of a request, or the message with which the queue refuses the request.
    private func shownByQueue(_ url: String) async throws -> String {
        let new: NewRequest
        do throws(QueueError) {
            new = try NewRequest(QueueRequest(method: "PUT", url: url), options: EnqueueOptions(id: "a"))
        } catch {
            return error.message
        }
        let store = try await SQLiteQueueStore(directory: directory.path)
        _ = try await store.enqueue([new])
        let details = try await store.details(of: "a")
        await store.close()
        return try #require(details).summary.url
    }
}
