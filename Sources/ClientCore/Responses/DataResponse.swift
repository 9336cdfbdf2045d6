public import Foundation
public import FoundationNetworking

/// The response to a request, with the value that a serializer has created from the body.
public struct DataResponse<Value> {
    /// The request that was sent; `nil` if it could not be created.
    public let request: URLRequest?
    /// The head of the response, even if the body is incomplete; `nil` if no head arrived.
    public var response: HTTPURLResponse? { lazyResponse?.value }
    /// The body, as far as it was received. It is empty if no request was sent, and `nil` if a stream closure received
    /// the body.
    public let data: Data?
    /// The value, or the error.
    public let result: Result<Value, any Error>
    /// The times of the request.
    public let timeline: Timeline
    /// The metrics of the transfers; `nil` if no request was sent.
    public var metrics: RequestMetrics? { lazyMetrics?.value }

    let lazyResponse: LazyResponse?
    let lazyMetrics: LazyMetrics?

    /// Creates a response.
    ///
    /// - Parameters:
    ///   - request: The request that was sent.
    ///   - response: The head of the response.
    ///   - data: The body.
    ///   - result: The value, or the error.
    ///   - timeline: The times of the request. Default: all 0.
    ///   - metrics: The metrics of the transfers. Default `nil`.
    public init(
        request: URLRequest?,
        response: HTTPURLResponse?,
        data: Data?,
        result: Result<Value, any Error>,
        timeline: Timeline = Timeline(),
        metrics: RequestMetrics? = nil
    ) {
        self.request = request
        lazyResponse = response.map { LazyResponse(value: $0) }
        self.data = data
        self.result = result
        self.timeline = timeline
        lazyMetrics = metrics.map { LazyMetrics(value: $0) }
    }

    /// The value; `nil` for a failure.
    public var value: Value? { result.value }

    /// The error; `nil` for a success.
    public var error: (any Error)? { result.error }
}

extension DataResponse: Sendable where Value: Sendable {}

extension DataResponse {
    init(_ outcome: RequestOutcome, _ result: Result<Value, any Error>) {
        self.init(
            request: outcome.request,
            data: outcome.body.data,
            result: result,
            timeline: outcome.clock.timeline,
            lazyResponse: outcome.head?.lazyResponse,
            lazyMetrics: outcome.metrics
        )
    }

    private init(
        request: URLRequest?,
        data: Data?,
        result: Result<Value, any Error>,
        timeline: Timeline,
        lazyResponse: LazyResponse?,
        lazyMetrics: LazyMetrics?
    ) {
        self.request = request
        self.data = data
        self.result = result
        self.timeline = timeline
        self.lazyResponse = lazyResponse
        self.lazyMetrics = lazyMetrics
    }

    func with<T>(_ result: Result<T, any Error>) -> DataResponse<T> {
        DataResponse<T>(
            request: request,
            data: data,
            result: result,
            timeline: timeline,
            lazyResponse: lazyResponse,
            lazyMetrics: lazyMetrics
        )
    }
}
