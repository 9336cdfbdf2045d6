public import Foundation
public import FoundationNetworking

/// What came of a request, with its body turned into a value.
public struct DataResponse<Value> {
    /// The request that was sent, or `nil` when none could be made.
    public let request: URLRequest?
    /// The head of the response, also when the rest of it did not come.
    public var response: HTTPURLResponse? { responseOnDemand?.value }
    /// The body, as far as it came; `nil` when nothing was sent.
    public let data: Data?
    /// The value, or why there is none.
    public let result: Result<Value, any Error>
    /// When what happened.
    public let timeline: Timeline
    /// What the transfer was, in detail; `nil` when nothing was sent.
    public var metrics: RequestMetrics? { metricsOnDemand?.value }

    let responseOnDemand: OnDemand<HTTPURLResponse?>?
    let metricsOnDemand: OnDemand<RequestMetrics?>?

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
        responseOnDemand = response.map { OnDemand(made: $0) }
        self.data = data
        self.result = result
        self.timeline = timeline
        metricsOnDemand = metrics.map { OnDemand(made: $0) }
    }

    /// The value, if there is one.
    public var value: Value? { result.value }

    /// Why there is no value.
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
            responseOnDemand: outcome.head?.foundation,
            metricsOnDemand: outcome.metrics
        )
    }

    private init(
        request: URLRequest?,
        data: Data?,
        result: Result<Value, any Error>,
        timeline: Timeline,
        responseOnDemand: OnDemand<HTTPURLResponse?>?,
        metricsOnDemand: OnDemand<RequestMetrics?>?
    ) {
        self.request = request
        self.data = data
        self.result = result
        self.timeline = timeline
        self.responseOnDemand = responseOnDemand
        self.metricsOnDemand = metricsOnDemand
    }

    func with<T>(_ result: Result<T, any Error>) -> DataResponse<T> {
        DataResponse<T>(
            request: request,
            data: data,
            result: result,
            timeline: timeline,
            responseOnDemand: responseOnDemand,
            metricsOnDemand: metricsOnDemand
        )
    }
}
