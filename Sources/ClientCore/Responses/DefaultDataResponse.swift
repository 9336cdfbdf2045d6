public import Foundation
public import FoundationNetworking

/// The response to a request, without serialization.
public struct DefaultDataResponse: Sendable {
    /// The request that was sent; `nil` if none could be created.
    public let request: URLRequest?
    /// The head of the response, even if the rest did not arrive.
    public var response: HTTPURLResponse? { lazyResponse?.value }
    /// The received part of the body; `nil` if nothing was sent.
    public let data: Data?
    /// The error if the response is not complete. A status of 4xx or 5xx is not an error.
    public let error: (any Error)?
    /// The times of the request.
    public let timeline: Timeline
    /// Details of the transfers; `nil` if nothing was sent.
    public var metrics: RequestMetrics? { lazyMetrics?.value }

    let lazyResponse: LazyValue<HTTPURLResponse?>?
    let lazyMetrics: LazyValue<RequestMetrics?>?

    /// Creates a response.
    ///
    /// - Parameters:
    ///   - request: The request that was sent.
    ///   - response: The head of the response.
    ///   - data: The body.
    ///   - error: The error if the response is not complete.
    ///   - timeline: The times of the request. Default: all 0.
    ///   - metrics: Details of the transfers. Default `nil`.
    public init(
        request: URLRequest?,
        response: HTTPURLResponse?,
        data: Data?,
        error: (any Error)?,
        timeline: Timeline = Timeline(),
        metrics: RequestMetrics? = nil
    ) {
        self.request = request
        lazyResponse = response.map { LazyValue(value: $0) }
        self.data = data
        self.error = error
        self.timeline = timeline
        lazyMetrics = metrics.map { LazyValue(value: $0) }
    }

    init(_ outcome: RequestOutcome) {
        request = outcome.request
        lazyResponse = outcome.head?.lazyResponse
        data = outcome.body.data
        error = outcome.error
        timeline = outcome.clock.timeline
        lazyMetrics = outcome.metrics
    }
}
