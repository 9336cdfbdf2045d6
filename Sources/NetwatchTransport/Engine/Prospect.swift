internal import NetwatchEventLoop

/// A transfer that is not libcurl's: it waits for others to the same host, for the host's addresses, or for a connection.
///
/// Lives on the engine's thread. A class, because it is handed about there more than anything else.
final class Prospect {
    private(set) var target: TransferTarget
    private(set) var caller: TransferCaller
    /// Ends it in time.
    var timer: EventLoop.Timer?
    private(set) var paused: TransferPause = []
    /// What the resolver was asked, while it is being looked up.
    var lookup: NameResolver.Lookup?
    /// Who makes the connection, while it is being made.
    var connector: Connector?
    /// Set when libcurl had it before, and has asked for a connection.
    private(set) var transfer: Transfer?
    /// The address that its own connection was made to, until a response has come over it.
    var connectedTo: IPAddress?
    /// Since when it needs a connection.
    private var connectsSince = Duration.zero

    init(_ target: TransferTarget, _ caller: TransferCaller) {
        self.target = target
        self.caller = caller
    }

    /// It need not wait for others any more.
    func begin(_ loop: EventLoop) {
        timer.map(loop.cancel)
        timer = nil
        caller.hasBegun()
    }

    /// How long the lookup may still take, which waited for a thread first.
    ///
    /// - Parameter start: When a thread began with it.
    func remainder(of timeout: Duration, since start: ContinuousClock.Instant) -> Duration {
        let allowed = start + timeout - .now
        guard let total = target.request.totalTimeout else { return allowed }
        return min(allowed, total - caller.elapsed)
    }

    /// libcurl has no connection for it. Returns how long making one may take, with the name lookup.
    func needsConnection(_ transfer: Transfer?) -> Duration {
        self.transfer = transfer
        paused = transfer?.paused ?? paused
        connectsSince = caller.elapsed
        let request = target.request
        return min(request.connectTimeout, (request.totalTimeout ?? .seconds(Int32.max)) - caller.elapsed)
    }

    /// There is a connection.
    func isConnected(to address: IPAddress) {
        connector = nil
        connectedTo = address
        caller.isConnected()
    }

    /// The request with its timeouts reduced by the time that has passed already.
    ///
    /// - Parameter isConnected: Whether some of it has passed with making a connection.
    func remainingTarget(isConnected: Bool) -> TransferTarget {
        var target = target
        let elapsed = caller.elapsed
        if isConnected { target.request.connectTimeout -= elapsed - connectsSince }
        target.request.totalTimeout = target.request.totalTimeout.map { $0 - elapsed }
        return target
    }

    /// Ends the attempts to connect. Returns what has become of them.
    func stopConnecting() -> ConnectionFailure? {
        defer { connector = nil }
        return connector?.assumeIsolated { $0.stop() }
    }

    /// It ends without libcurl.
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
