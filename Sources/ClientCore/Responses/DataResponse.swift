public import Foundation
public import FoundationNetworking

/// What came of a request, with its body turned into a value.
public struct DataResponse<Value> {
    /// The request that was sent, or `nil` when none could be made.
    public let request: URLRequest?
    /// The head of the response, also when the rest of it did not come.
    public let response: HTTPURLResponse?
    /// The body, as far as it came; `nil` when nothing was sent.
    public let data: Data?
    /// The value, or why there is none.
    public let result: Result<Value, any Error>
    /// When what happened.
    public let timeline: Timeline
    /// What the transfer was, in detail; `nil` when nothing was sent.
    public let metrics: RequestMetrics?

    /// Puts a response together.
    ///
    /// - Parameters:
    ///   - request: The request that was sent.
    ///   - response: The head of the response.
    ///   - data: The body.
    ///   - result: The value, or why there is none.
    ///   - timeline: When what happened. Default: all of it at 0.
    ///   - metrics: What the transfer was. Default `nil`.
    public init(
        request: URLRequest?,
        response: HTTPURLResponse?,
        data: Data?,
        result: Result<Value, any Error>,
        timeline: Timeline = Timeline(),
        metrics: RequestMetrics? = nil
    ) {
        self.request = request
        self.response = response
        self.data = data
        self.result = result
        self.timeline = timeline
        self.metrics = metrics
    }

    /// The value, if there is one.
    public var value: Value? { result.value }

    /// Why there is no value.
    public var error: (any Error)? { result.error }
}

extension DataResponse: Sendable where Value: Sendable {}

extension DataResponse {
    func with<T>(_ result: Result<T, any Error>) -> DataResponse<T> {
        DataResponse<T>(
            request: request,
            response: response,
            data: data,
            result: result,
            timeline: timeline,
            metrics: metrics
        )
    }
}
