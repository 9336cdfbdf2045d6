public import Foundation
public import FoundationNetworking

/// The response to a request, with its body as received.
public struct DefaultDataResponse: Sendable {
    /// The request that was sent; `nil` if it could not be created.
    public let request: URLRequest?
    /// The head of the response, even if the body is incomplete; `nil` if no head arrived.
    public var response: HTTPURLResponse? { lazyResponse?.value }
    /// The body, as far as it was received. It is empty if no request was sent, and `nil` if a stream closure received
    /// the body.
    public let data: Data?
    /// The error of the request; `nil` for a success. A status of 4xx or 5xx is an error only if a validator rejects
    /// the response.
    public let error: (any Error)?
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
    ///   - error: The error of the request.
    ///   - timeline: The times of the request. Default: all 0.
    ///   - metrics: The metrics of the transfers. Default `nil`.
    public init(
        request: URLRequest?,
        response: HTTPURLResponse?,
        data: Data?,
        error: (any Error)?,
        timeline: Timeline = Timeline(),
        metrics: RequestMetrics? = nil
    ) {
        self.request = request
        lazyResponse = response.map { LazyResponse(value: $0) }
        self.data = data
        self.error = error
        self.timeline = timeline
        lazyMetrics = metrics.map { LazyMetrics(value: $0) }
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
