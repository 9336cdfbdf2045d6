internal import NetwatchEventLoop

/// Delivers the events of a transfer to its caller, and collects the metrics that are known before libcurl has a
/// handle.
///
/// The engine and the transfer share it. It is confined to the engine's thread.
final class TransferReporter {
    /// The metrics known so far.
    private(set) var metrics: TransferMetrics
    private let body: TransferBody?
    let deliver: @Sendable ([TransferEvent]) -> Void

    init(
        of request: TransferRequest,
        startedAt: ContinuousClock.Instant,
        deliver: @escaping @Sendable ([TransferEvent]) -> Void
    ) {
        metrics = TransferMetrics(startedAt: startedAt)
        body = request.body
        self.deliver = deliver
    }

    /// The time since the transfer was requested.
    var elapsed: Duration { metrics.startedAt.duration(to: .now) }

    /// Records that the transfer no longer waits for other transfers to the same host.
    func recordBegin() {
        metrics.begun = elapsed
    }

    func recordLookup(_ outcome: NameResolver.Outcome) {
        metrics.lookupEnded = elapsed
        if case .success(let addresses) = outcome { metrics.addresses = addresses }
    }

    func recordConnection() {
        metrics.connected = elapsed
    }

    /// Reports the end. Without `metrics`, the values known so far are reported.
    func end(
        _ failure: TransferFailure?,
        _ metrics: TransferMetrics? = nil,
        after events: consuming [TransferEvent] = []
    ) {
        if case .source(let source) = body { source.cancel() }
        var metrics = metrics ?? self.metrics
        metrics.ended = elapsed
        events.append(.end(TransferEnd(failure: failure, metrics: metrics)))
        deliver(events)
    }
}
