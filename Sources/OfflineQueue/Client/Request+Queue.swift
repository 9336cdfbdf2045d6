public import ClientCore
public import Dispatch

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
