internal import NetwatchEventLoop

/// An object that delivers the events of a transfer to its caller. It also collects the metrics of the time before
/// libcurl receives the transfer.
///
/// The engine and the transfer share it, both on the engine's thread.
final class TransferReporter {
    /// The metrics known so far.
    private(set) var metrics: TransferMetrics
    private let body: TransferBody?
    let deliver: @Sendable ([TransferEvent]) -> Void

    init(
        of request: TransferRequest,
        startedAt: BootInstant,
        deliver: @escaping @Sendable ([TransferEvent]) -> Void
    ) {
        metrics = TransferMetrics(startedAt: startedAt)
        body = request.body
        self.deliver = deliver
    }

    /// The time since the caller passed the transfer to the engine.
    var elapsed: Duration { metrics.startedAt.duration(to: .now) }

    /// Records that the transfer no longer waits for other transfers to the same host.
    func recordBegin() {
        metrics.begun = elapsed
    }

    func recordLookup(_ outcome: NameResolver.Outcome) {
        metrics.lookupEnded = elapsed
        if case .success(let addresses) = outcome { metrics.addresses = addresses }
    }

    func recordConnection(to peer: ConnectionPeer) {
        metrics.connected = elapsed
        if !peer.address.isLoopback { deliver([.connected(peer)]) }
    }

    /// Delivers the last events and the end of the transfer.
    ///
    /// - Parameters:
    ///   - failure: The reason why the transfer failed; `nil` after a success.
    ///   - metrics: The final metrics; `nil` for the metrics that this object has collected.
    ///   - events: The events to deliver before the end.
    func end(
        _ failure: TransferFailure?,
        _ metrics: TransferMetrics? = nil,
        after events: consuming [TransferEvent] = []
    ) {
        if case .source(let source) = body { source.cancel() }
        var metrics = metrics ?? self.metrics
        metrics.ended = elapsed
        var all = consume events
        all.append(.end(TransferEnd(failure: failure, metrics: metrics)))
        deliver(all)
    }
}
