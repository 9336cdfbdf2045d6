internal import NetwatchEventLoop

/// Who asked for a transfer: where its events go, and since when it is under way.
struct TransferCaller {
    let startedAt: ContinuousClock.Instant
    /// When it no longer had to wait for others.
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

    /// How long it has been under way.
    var elapsed: Duration { startedAt.duration(to: .now) }

    /// What is known of the costs before there is a handle.
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

    /// Reports the end; with what was known before, unless a handle knows more.
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
