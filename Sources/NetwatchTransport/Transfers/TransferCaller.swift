internal import NetwatchEventLoop

/// The caller's side of a transfer: the event handler, and the times before libcurl has a handle.
struct TransferCaller {
    let startedAt: ContinuousClock.Instant
    /// When the transfer stopped waiting for other transfers to the same host.
    private(set) var begun: Duration?
    private(set) var lookupEnded: Duration?
    private(set) var connected: Duration?
    private var addresses: [IPAddress] = []
    private let body: TransferBody?
    let deliver: @Sendable ([TransferEvent]) -> Void

    init(
        of request: TransferRequest,
        startedAt: ContinuousClock.Instant,
        deliver: @escaping @Sendable ([TransferEvent]) -> Void
    ) {
        self.startedAt = startedAt
        self.deliver = deliver
        body = request.body
    }

    /// The time since the transfer was requested.
    var elapsed: Duration { startedAt.duration(to: .now) }

    /// The metrics that are known before there is a handle.
    var metrics: TransferMetrics {
        var metrics = TransferMetrics(startedAt: startedAt)
        metrics.begun = begun
        metrics.lookupEnded = lookupEnded
        metrics.connected = connected
        metrics.addresses = addresses
        return metrics
    }

    mutating func hasBegun() {
        begun = elapsed
    }

    mutating func lookupHasEnded(_ outcome: NameResolver.Outcome) {
        lookupEnded = elapsed
        if case .success(let addresses) = outcome { self.addresses = addresses }
    }

    mutating func isConnected() {
        connected = elapsed
    }

    /// Reports the end. Without `metrics`, the values known so far are reported.
    func end(
        _ failure: TransferFailure?,
        _ metrics: TransferMetrics? = nil,
        after news: consuming [TransferEvent] = []
    ) {
        if case .source(let source) = body { source.cancel() }
        var metrics = metrics ?? self.metrics
        metrics.ended = elapsed
        news.append(.end(TransferEnd(failure: failure, metrics: metrics)))
        deliver(news)
    }
}
