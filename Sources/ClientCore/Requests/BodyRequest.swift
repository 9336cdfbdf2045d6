public import Dispatch
public import Foundation
internal import FoundationNetworking

/// A request that keeps the body of its response: as `Data` in memory (``DataRequest``), or in the file at a `URL`
/// (``DownloadRequest``).
public class BodyRequest<Content: Sendable>: Request, @unchecked Sendable {
    // This class must not have stored properties; see the comment in `Request` on `@unchecked Sendable`.

    /// The number of received bytes of the response's body, and its total size. Bytes count as they are sent over the
    /// network, before decoding. If a download is resumed, the bytes of the earlier attempts count, too. The total is
    /// -1 while it is unknown.
    public var progress: Progress { core.downloadProgress.progress }

    /// Sets a closure that is called while the response's body arrives. A second call replaces the closure.
    ///
    /// - Parameters:
    ///   - queue: The queue that the closure is called on. Default: the session's
    ///     ``SessionManager/completionQueue``. If the queue is busy, several updates result in one call.
    ///   - closure: Receives the request's ``progress``.
    @discardableResult
    @preconcurrency
    public func downloadProgress(
        queue: DispatchQueue? = nil,
        closure: @escaping @Sendable (Progress) -> Void
    ) -> Self {
        core.downloadProgress.setClosure(on: queue ?? completionQueue, closure)
        return self
    }

    // MARK: Handlers

    /// Adds a handler for the response, whether the request succeeds or fails.
    ///
    /// Handlers are called in the order in which they were added. A handler added after the request has finished is
    /// still called.
    ///
    /// - Parameters:
    ///   - queue: The queue that the handler is called on. Default: the session's
    ///     ``SessionManager/completionQueue``.
    ///   - completionHandler: Receives the response. Called exactly once.
    @discardableResult
    @preconcurrency
    public func response(
        queue: DispatchQueue? = nil,
        completionHandler: @escaping @Sendable (BodyResponse<Void, Content>) -> Void
    ) -> Self {
        deliver(on: queue, { BodyResponse($0) }, to: completionHandler)
    }

    /// Waits for the response, whether the request succeeds or fails. Cancelling the waiting task cancels the
    /// request.
    public func response() async -> BodyResponse<Void, Content> {
        await finished { BodyResponse($0) }
    }

    /// Adds a handler for a response that `make` creates on the request's own queue.
    func deliver<Response>(
        on queue: DispatchQueue?,
        _ make: @escaping @Sendable (RequestOutcome) -> Response,
        to completionHandler: @escaping @Sendable (Response) -> Void
    ) -> Self {
        let queue = queue ?? completionQueue
        whenFinished { outcome in
            // `nonisolated(unsafe)` is safe: the value is created here, and only the handler receives it.
            nonisolated(unsafe) let response = make(outcome)
            queue.async { completionHandler(response) }
        }
        return self
    }
}

/// A request whose response body is kept in memory. ``BodyRequest`` declares its handlers and checks.
public class DataRequest: BodyRequest<Data>, @unchecked Sendable {
    // This class must not have stored properties; see the comment in `Request` on `@unchecked Sendable`.

    /// Passes the body to a closure as it arrives, instead of keeping it in memory. Handlers receive `nil` as the data.
    ///
    /// The closure is called on the request's queue, in order. It first receives the bytes that arrived before this
    /// call. If the closure is slow, the transfer is paused once about 1 MiB is waiting, so that the server has to
    /// slow down. When the request is retried, the closure receives the new body from its first byte.
    @discardableResult
    @preconcurrency
    public func stream(closure: (@Sendable (Data) -> Void)? = nil) -> Self {
        core.perform { core in
            guard var sink = core.sink as? DataSink else { return }
            sink.stream(to: closure)
            core.sink = sink
            if core.state.isSettled { core.releaseClosures() }
        }
        return self
    }
}
