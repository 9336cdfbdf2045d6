public import Dispatch
public import Foundation
internal import FoundationNetworking

/// A request whose response body is kept in memory.
public class DataRequest: Request, @unchecked Sendable {
    // Stores nothing; see Request.

    /// How far the response has come, in bytes on the wire; the total is -1 while it is unknown.
    public var progress: Progress { core.downloadProgress.progress }

    /// Calls a closure as the response comes in. Only the last closure counts.
    ///
    /// - Parameters:
    ///   - queue: Where it is called. Default: the session's ``SessionManager/completionQueue``. Calls that wait
    ///     there are joined into one.
    ///   - closure: Takes the request's ``progress``.
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

    /// Adds a handler for whatever comes of the request.
    ///
    /// Handlers are called in the order they were added. One added after the end is called all the same.
    ///
    /// - Parameters:
    ///   - queue: Where the handler is called. Default: the session's ``SessionManager/completionQueue``.
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

    /// Adds a handler for what a serializer makes of the response.
    ///
    /// Each handler's serializer runs on a queue of the request's own, in the order they were added.
    ///
    /// - Parameters:
    ///   - queue: Where the handler is called. Default: the session's ``SessionManager/completionQueue``.
    ///   - responseSerializer: Makes a value of the response, or says why there is none.
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
            // Made here and given away here: nobody else has it.
            nonisolated(unsafe) let response = DataResponse(outcome, responseSerializer.serialize(outcome))
            queue.async { completionHandler(response) }
        }
        return self
    }

    /// Waits for whatever comes of the request. Cancelling the waiting task cancels the request.
    public func response() async -> DefaultDataResponse {
        await finished { DefaultDataResponse($0) }
    }

    /// Waits for what a serializer makes of the response. Cancelling the waiting task cancels the request.
    public func response<Serializer: DataResponseSerializerProtocol>(
        responseSerializer: Serializer
    ) async -> sending DataResponse<Serializer.SerializedObject> {
        await finished { DataResponse($0, responseSerializer.serialize($0)) }
    }
}
