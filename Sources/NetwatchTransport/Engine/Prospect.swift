internal import NetwatchEventLoop

/// A transfer that libcurl does not run: it waits for the connection limit, for the name lookup, or for a connection.
///
/// It is confined to the engine's thread. It is a class because it is passed around often, so copies would be
/// expensive.
final class Prospect {
    private(set) var target: TransferTarget
    private(set) var caller: TransferCaller
    /// The timer of the current timeout.
    var timer: EventLoop.Timer?
    private(set) var paused: TransferPause = []
    /// The running name lookup.
    var lookup: NameResolver.Lookup?
    /// The running connection attempts.
    var connector: Connector?
    /// Set if libcurl ran the transfer before and then asked for a connection.
    private(set) var transfer: Transfer?
    /// The address of the new connection, until a response has arrived over it.
    var connectedTo: IPAddress?
    /// When the transfer started to need a connection, relative to its start.
    private var connectsSince = Duration.zero

    init(_ target: TransferTarget, _ caller: TransferCaller) {
        self.target = target
        self.caller = caller
    }

    /// Records that the transfer no longer waits for other transfers.
    func begin(_ loop: EventLoop) {
        timer.map(loop.cancel)
        timer = nil
        caller.hasBegun()
    }

    /// Returns the rest of the timeout of a lookup that first waited for a thread.
    ///
    /// - Parameter start: When the lookup started.
    func remainder(of timeout: Duration, since start: ContinuousClock.Instant) -> Duration {
        let allowed = start + timeout - .now
        guard let total = target.request.totalTimeout else { return allowed }
        return min(allowed, total - caller.elapsed)
    }

    /// Records that libcurl has no connection for the transfer. Returns the timeout for name lookup and connection.
    func needsConnection(_ transfer: Transfer?) -> Duration {
        self.transfer = transfer
        paused = transfer?.paused ?? paused
        connectsSince = caller.elapsed
        let request = target.request
        return min(request.connectTimeout, (request.totalTimeout ?? .seconds(Int32.max)) - caller.elapsed)
    }

    /// Records that a connection was made.
    func isConnected(to address: IPAddress) {
        connector = nil
        connectedTo = address
        caller.isConnected()
    }

    /// Returns the request with its timeouts reduced by the elapsed time.
    ///
    /// - Parameter isConnected: Whether part of that time was spent on connecting.
    func remainingTarget(isConnected: Bool) -> TransferTarget {
        var target = target
        let elapsed = caller.elapsed
        if isConnected { target.request.connectTimeout -= elapsed - connectsSince }
        target.request.totalTimeout = target.request.totalTimeout.map { $0 - elapsed }
        return target
    }

    /// Stops the connection attempts. Returns their outcomes.
    func stopConnecting() -> ConnectionFailure? {
        defer { connector = nil }
        return connector?.assumeIsolated { $0.stop() }
    }

    /// Ends the transfer while libcurl does not run it.
    func end(_ failure: TransferFailure) {
        _ = stopConnecting()
        if let transfer { transfer.finish(unconnected: failure) } else { caller.end(failure) }
    }

    func take(_ outcome: NameResolver.Outcome) throws(TransferFailure) {
        lookup = nil
        caller.lookupHasEnded(outcome)
        switch outcome {
        case .success(let addresses): try target.setAddresses(addresses)
        case .failure(let failure): throw .noAddress(failure)
        }
    }

    func setPause(_ what: TransferPause?) {
        paused = what.map(paused.union) ?? []
    }
}
