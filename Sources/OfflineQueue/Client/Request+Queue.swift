public import ClientCore
public import Dispatch
internal import Foundation
public import FoundationNetworking

extension DataRequest {
    /// Stores the request in a queue if it fails because its host cannot be reached, and finishes it with the response
    /// that the queue receives later. Uploads of data, files, streams and multipart bodies can be stored, too.
    ///
    /// ```swift
    /// session.request("https://example.com/orders", method: .post, headers: ["Idempotency-Key": "order-4711"])
    ///     .queueIfOffline(queue)
    ///     .onQueued { print("stored as \($0.id)") }
    ///     .validate()
    ///     .responseData { print($0.result) }
    /// ```
    ///
    /// Retriers are called first. If none retries the request, the queue stores the request as it was before
    /// adaptation, and a copy of its body. ``OfflineQueue`` sends it through its own session, with that session's
    /// adapter. When the request is on disk, ``ClientCore/Request/onQueued(queue:_:)`` is called and the request's
    /// state becomes `queued`.
    ///
    /// The request's handlers are called once:
    /// - with the response, if this process receives it. Validators check it, and serializers process it.
    /// - with ``QueueError/Code/dead`` or ``QueueError/Code/cancelled``, if the request ends in the queue without being
    ///   delivered. If the server refused the request, its response is available in addition to the error.
    /// - with ``QueueError/Code/leftToQueue``, if the session is released or the queue stops first. The stored request
    ///   is sent when the queue runs again.
    /// - with the original error, if the request cannot be stored. ``ClientCore/Request/queueError`` contains the
    ///   cause. After ``QueueError/Code/storeFailed`` it is unknown whether the request is on disk.
    ///
    /// A request that can never be stored fails immediately, with a ``QueueError`` such as
    /// ``QueueError/Code/secretHeader``, even if its host can be reached: otherwise the error would only show in the
    /// first outage. The request is then not sent, or its transfer is cancelled if it has started. Header fields that an
    /// adapter adds are not stored, and not refused.
    ///
    /// While the request is held in the queue, its handlers wait.
    ///
    /// Call this function before adding handlers: a request whose handler was called cannot be taken over any more.
    /// Requests that succeed directly overtake requests that wait in the queue. If their order matters, use
    /// ``ClientCore/SessionManager/background(queue:options:)``.
    ///
    /// Cancelling the request also cancels it in the queue, unless ``OfflineOptions/isDetached`` is set, or it is
    /// already dead there. A request that was in the queue before, under the same ``EnqueueOptions/id``, is not
    /// cancelled.
    ///
    /// A request without an idempotency key that the server may have received is not taken over, because it would be
    /// sent twice. If the request has not been started, this function adds a key to it, as
    /// ``ClientCore/SessionManager/queuesFailedRequests(in:options:matching:)`` does, and all attempts carry the same
    /// key. Most requests start when they are created: set `startRequestsImmediately` to
    /// `false`, or set the header field `Idempotency-Key` yourself.
    ///
    /// - Parameters:
    ///   - queue: The queue. It must be started and not stopped.
    ///   - options: The failures to take over, and the options for storing. Default: failures before the server can
    ///     have acted.
    @discardableResult
    public func queueIfOffline(_ queue: OfflineQueue, _ options: OfflineOptions = OfflineOptions()) -> Self {
        offerFailure(to: QueueOwner(queue, options, .single))
    }
}

extension Request {
    /// The reason why a queue could not take over the failed request: a ``QueueError``, or the error of the body's
    /// stream. `nil` if the queue has stored the request, or does not cover the failure.
    ///
    /// The request's handlers receive the error with which the request failed. If it is a `URLError`, it contains this
    /// reason under `NSUnderlyingErrorKey`. An `AFError`, for example for a status in ``OfflineOptions/statuses``,
    /// cannot contain it. In a background session, where nothing was sent, the reason is the error itself.
    ///
    /// The value is set before the handlers are called, and may be read from any thread.
    public var queueError: (any Error)? { ownerRefusal }

    /// Calls a handler when the request has been stored in a queue. It is called at most once.
    ///
    /// - Parameters:
    ///   - queue: The queue on which the handler is called. Default `nil`: the session's
    ///     `completionQueue`.
    ///   - handler: Receives the receipt, with the id of the stored request.
    @preconcurrency @discardableResult
    public func onQueued(
        queue: DispatchQueue? = nil,
        _ handler: @escaping @Sendable (Receipt) -> Void
    ) -> Self {
        let queue = queue ?? completionQueue
        return whenQueued { report in
            guard let receipt = report as? Receipt else { return }
            queue.async { handler(receipt) }
        }
    }
}

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

extension QueueRequest {
    /// Creates a queue's request from a `URLRequest`, with its method, URL, header fields and `httpBody`.
    ///
    /// The cache policy, the timeout and other properties for `URLSession` have no counterpart. `Content-Length` is
    /// omitted, because the client sets it.
    ///
    /// - Throws: ``QueueError``: `invalidURL` if the request has no URL, `bodyUnavailable` if it has a body stream,
    ///   `invalidOption` if its cache policy is `returnCacheDataDontLoad`, which forbids sending it. A stream can be
    ///   read only once; upload it with ``OfflineQueue/appendToBody(_:_:at:for:)`` instead.
    public init(_ request: URLRequest) throws(QueueError) {
        guard request.httpBodyStream == nil else {
            throw QueueError(
                .bodyUnavailable,
                "the request has a body stream, which cannot be stored; set `httpBody` instead"
            )
        }
        try self.init(request, body: .data(request.httpBody ?? Data()))
    }

    /// Creates a queue's request from a `URLRequest`, with another body.
    init(_ request: URLRequest, body: Body) throws(QueueError) {
        guard let url = request.url else { throw QueueError(.invalidURL, "the request has no URL") }
        guard request.cachePolicy != .returnCacheDataDontLoad else {
            let words = "the cache policy `returnCacheDataDontLoad` forbids sending the request"
            throw QueueError(.invalidOption, words)
        }
        let fields = request.allHTTPHeaderFields ?? [:]
        self.init(
            method: request.httpMethod ?? "GET",
            url: url.absoluteString,
            headers: fields.filter { $0.key.lowercased() != "content-length" }
                .sorted { $0.key < $1.key }
                .map { Header(name: $0.key, value: $0.value) },
            body: body
        )
    }
}

extension URLRequest {
    /// Creates a `URLRequest` from a queue's request. Fields of the same name are joined with a comma.
    ///
    /// - Throws: ``QueueError``: `invalidURL` if Foundation does not accept the URL, `bodyUnavailable` if the body is
    ///   an upload of a queue, `bodyFileUnusable` if the body's file cannot be read.
    public init(_ request: QueueRequest) throws(QueueError) {
        try self.init(method: request.method, url: request.url, headers: request.headers, body: nil)
        switch request.body {
        case .data(let data): httpBody = data.isEmpty ? nil : data
        case .file(let path):
            guard let stream = InputStream(fileAtPath: path), FileManager.default.isReadableFile(atPath: path)
            else {
                throw QueueError(.bodyFileUnusable, "the file \(quoted(path)) cannot be read", path: path)
            }
            httpBodyStream = stream
        case .staged(let id, _):
            throw QueueError(
                .bodyUnavailable,
                "the body is the upload \(quoted(id)) of a queue; only that queue can send it"
            )
        }
    }
}
