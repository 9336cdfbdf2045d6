public import Dispatch
public import Foundation

/// A request whose response body is kept in memory.
public class DataRequest: Request, @unchecked Sendable {
    // Stores nothing; see Request.

    /// Adds a handler for whatever comes of the request.
    ///
    /// Handlers are called in the order they were added. One added after the end is called all the same.
    ///
    /// - Parameters:
    ///   - queue: Where the handler is called. Default: the main queue.
    ///   - completionHandler: Called exactly once.
    @discardableResult
    @preconcurrency
    public func response(
        queue: DispatchQueue? = nil,
        completionHandler: @escaping @Sendable (DefaultDataResponse) -> Void
    ) -> Self {
        whenFinished { outcome in
            let response = DefaultDataResponse(outcome)
            (queue ?? .main).async { completionHandler(response) }
        }
        return self
    }

    /// Adds a handler for the response's body.
    ///
    /// An empty body is a success. The status is not looked at.
    ///
    /// - Parameters:
    ///   - queue: Where the handler is called. Default: the main queue.
    ///   - completionHandler: Called exactly once.
    @discardableResult
    @preconcurrency
    public func responseData(
        queue: DispatchQueue? = nil,
        completionHandler: @escaping @Sendable (DataResponse<Data>) -> Void
    ) -> Self {
        whenFinished { outcome in
            let response = DataResponse(data: outcome)
            (queue ?? .main).async { completionHandler(response) }
        }
        return self
    }

    /// Waits for whatever comes of the request. Cancelling the waiting task cancels the request.
    public func response() async -> DefaultDataResponse {
        DefaultDataResponse(await finished())
    }

    /// Waits for the response's body. Cancelling the waiting task cancels the request.
    public func responseData() async -> DataResponse<Data> {
        DataResponse(data: await finished())
    }

    private func finished() async -> RequestOutcome {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                whenFinished { continuation.resume(returning: $0) }
            }
        } onCancel: {
            cancel()
        }
    }
}

extension DefaultDataResponse {
    fileprivate init(_ outcome: Request.RequestOutcome) {
        self.init(
            request: outcome.request,
            response: outcome.response,
            data: outcome.data,
            error: outcome.error
        )
    }
}

extension DataResponse<Data> {
    fileprivate init(data outcome: Request.RequestOutcome) {
        self.init(
            request: outcome.request,
            response: outcome.response,
            data: outcome.data,
            result: Request.serializeResponseData(
                response: outcome.response,
                data: outcome.data,
                error: outcome.error
            )
        )
    }
}
