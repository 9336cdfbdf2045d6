public import ClientCore
internal import Foundation
public import FoundationNetworking

extension SessionManager {
    /// Stores requests of this session in a queue if they fail because their host cannot be reached; see
    /// ``ClientCore/DataRequest/queueIfOffline(_:_:)``. Downloads to files are not stored.
    ///
    /// ```swift
    /// session.queuesFailedRequests(in: queue) { urlRequest in urlRequest.httpMethod != "GET" }
    /// ```
    ///
    /// Each request that is created after this call gets an idempotency key before it is first sent, if its method is
    /// not idempotent and it has no key. All attempts of a request carry the same key.
    ///
    /// A queue's own attempts are never stored again, so this session may also be the queue's session. Then the stored
    /// requests are sent with this session's adapter, cookies and trust policies.
    ///
    /// - Parameters:
    ///   - queue: The queue; `nil` to store no more requests. The session does not retain it.
    ///   - options: The failures to take over, and the options for storing.
    ///   - matches: Returns whether a request, as it was before adaptation, is stored. Called on the request's own
    ///     queue. Default: every request is.
    @preconcurrency
    public func queuesFailedRequests(
        in queue: OfflineQueue?,
        options: OfflineOptions = OfflineOptions(),
        matching matches: @escaping @Sendable (URLRequest) -> Bool = { _ in true }
    ) {
        guard failedRequestOwner?.takesUnsentRequests != true else { return }
        failedRequestOwner = queue.map { QueueOwner($0, options, .failed(matching: matches)) }
    }

    /// Returns a session whose requests are stored in a queue before they are sent, and then sent by the queue.
    ///
    /// ```swift
    /// // Retain the session, for example in a property.
    /// let session = SessionManager.background(queue: queue, options: EnqueueOptions(isFIFO: true))
    /// session.request("https://example.com/orders", method: .post, parameters: ["product": 17])
    ///     .validate()
    ///     .responseData { print($0.result) }
    /// ```
    ///
    /// It is similar to a background session on Apple's platforms: a request survives the end of the process. Its
    /// handlers are called as ``ClientCore/DataRequest/queueIfOffline(_:_:)`` describes. An adapter of the returned
    /// session can reject a request, but the queue sends the request with the adapter and the trust policies of the
    /// queue's own session, and repeats it by its own rules. Downloads to files fail with a ``QueueError``.
    ///
    /// Requests whose bodies are in memory or in a file are stored in the order in which they were created. The order
    /// is not kept by a session that has event monitors or an interceptor, or does not start its requests immediately.
    ///
    /// ``ClientCore/SessionManager/queuesFailedRequests(in:options:matching:)`` has no effect on the returned session.
    ///
    /// - Parameters:
    ///   - queue: The queue. The session does not retain it. After the queue has been stopped, requests fail with
    ///     ``QueueError/Code/stopped``.
    ///   - options: The options with which each request is stored.
    public static func background(
        queue: OfflineQueue,
        options: EnqueueOptions = EnqueueOptions()
    ) -> SessionManager {
        let session = SessionManager.bare()
        session.failedRequestOwner = QueueOwner(queue, OfflineOptions(options), .unsent)
        return session
    }
}
