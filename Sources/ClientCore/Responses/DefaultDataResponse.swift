public import Foundation
public import FoundationNetworking

/// What came of a request, as it is.
public struct DefaultDataResponse: Sendable {
    /// The request that was sent, or `nil` when none could be made.
    public let request: URLRequest?
    /// The head of the response, also when the rest of it did not come.
    public var response: HTTPURLResponse? { responseOnDemand?.value }
    /// The body, as far as it came; `nil` when nothing was sent.
    public let data: Data?
    /// Why there is no whole response. A status of 4xx or 5xx is none.
    public let error: (any Error)?
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
    ///   - error: Why there is no whole response.
    ///   - timeline: When what happened. Default: all of it at 0.
    ///   - metrics: What the transfer was. Default `nil`.
    public init(
        request: URLRequest?,
        response: HTTPURLResponse?,
        data: Data?,
        error: (any Error)?,
        timeline: Timeline = Timeline(),
        metrics: RequestMetrics? = nil
    ) {
        self.request = request
        responseOnDemand = response.map { OnDemand(made: $0) }
        self.data = data
        self.error = error
        self.timeline = timeline
        metricsOnDemand = metrics.map { OnDemand(made: $0) }
    }

    init(_ outcome: RequestOutcome) {
        request = outcome.request
        responseOnDemand = outcome.head?.foundation
        data = outcome.body.data
        error = outcome.error
        timeline = outcome.clock.timeline
        metricsOnDemand = outcome.metrics
    }
}
