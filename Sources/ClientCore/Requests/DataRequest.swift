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
    ///     ``SessionManager/completionQueue``. Calls that are pending there are merged into one.
    ///   - closure: Receives the request's ``progress``.
    @discardableResult
    @preconcurrency
    public func downloadProgress(
        queue: DispatchQueue? = nil,
        closure: @escaping @Sendable (Progress) -> Void
    ) -> Self {
        core.downloadProgress.tell(on: queue ?? completionQueue, closure)
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

    /// Adds a handler for the value that a serializer returns.
    ///
    /// Serializers run on the request's own queue, in the order their handlers were added.
    ///
    /// - Parameters:
    ///   - queue: The queue that the handler is called on. Default: the session's
    ///     ``SessionManager/completionQueue``.
    ///   - responseSerializer: Converts the response to a value, or returns an error.
    ///   - completionHandler: Called exactly once.
    @discardableResult
    @preconcurrency
    public func response<Serializer: DataResponseSerializerProtocol>(
        queue: DispatchQueue? = nil,
        responseSerializer: Serializer,
        completionHandler: @escaping @Sendable (DataResponse<Serializer.SerializedObject>) -> Void
    ) -> Self {
        let queue = queue ?? completionQueue
        whenFinished { outcome in
            // Safe: the value is created here, and only the handler receives it.
            nonisolated(unsafe) let response = DataResponse(outcome, responseSerializer.serialize(outcome))
            queue.async { completionHandler(response) }
        }
        return self
    }

    /// Waits for the response, whether the request succeeds or fails. Cancelling the waiting task cancels the
    /// request.
    public func response() async -> DefaultDataResponse {
        await finished { DefaultDataResponse($0) }
    }

    /// Waits for the value that a serializer returns. Cancelling the waiting task cancels the request.
    public func response<Serializer: DataResponseSerializerProtocol>(
        responseSerializer: Serializer
    ) async -> sending DataResponse<Serializer.SerializedObject> {
        await finished { DataResponse($0, responseSerializer.serialize($0)) }
    }
}
