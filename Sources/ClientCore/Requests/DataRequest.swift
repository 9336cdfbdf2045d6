public import Dispatch
public import Foundation
internal import FoundationNetworking

/// A request whose response body is kept in memory.
public class DataRequest: Request, @unchecked Sendable {
    // Stores nothing: see the comment in Request on `@unchecked Sendable`.

    /// The number of response bytes received on the wire. The total is -1 while it is unknown.
    public var progress: Progress { core.downloadProgress.progress }

    /// Sets a closure that is called as the response arrives. A second call replaces the closure.
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

    /// Passes the body to a closure as it arrives instead of keeping it. The response's data is then `nil`.
    ///
    /// Bytes that arrived before this call are passed first. The closure is called on the request's queue, in
    /// order. While it runs, the server is slowed down. When the request is retried, the body starts again from
    /// the first byte.
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
    /// Handlers are called in the order they were added. A handler added after the request has finished is
    /// still called.
    ///
    /// - Parameters:
    ///   - queue: The queue that the handler is called on. Default: the session's
    ///     ``SessionManager/completionQueue``.
    ///   - completionHandler: Called exactly once.
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
