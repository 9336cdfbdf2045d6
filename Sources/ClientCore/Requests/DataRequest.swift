public import Dispatch
public import Foundation
internal import FoundationNetworking

/// A request whose response body is kept in memory.
public class DataRequest: Request, @unchecked Sendable {
    // This class must not have stored properties; see the comment in `Request` on `@unchecked Sendable`.

    /// The progress of receiving the response's body, in bytes on the wire. The total is -1 while it is unknown.
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
        completionHandler: @escaping @Sendable (DefaultDataResponse) -> Void
    ) -> Self {
        let queue = queue ?? completionQueue
        whenFinished { outcome in
            let response = DefaultDataResponse(outcome)
            queue.async { completionHandler(response) }
        }
        return self
    }

    /// Waits for the response, whether the request succeeds or fails. Cancelling the waiting task cancels the
    /// request.
    public func response() async -> DefaultDataResponse {
        await finished { DefaultDataResponse($0) }
    }
}
