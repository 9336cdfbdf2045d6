internal import NetwatchEventLoop

/// The engine's record of a transfer, from its start to its end.
///
/// It is confined to the engine's thread.
final class EngineTransfer {
    enum Stage {
        /// Waiting for other transfers to the same host.
        case waiting
        /// Waiting for a connection, including the name lookup.
        case connecting
        /// libcurl runs the transfer.
        case running
    }

    let key: HostLimiter.Key
    private(set) var target: TransferTarget
    let reporter: TransferReporter
    var stage = Stage.waiting
    /// The multi handle that runs the transfer, once there is one.
    var multi: MultiTable.ID?
    /// The timer of the total timeout while the transfer waits for others.
    var timer: EventLoop.Timer?
    private(set) var paused: TransferPause = []
    /// Set while the transfer connects, and until a response has arrived over its new connection.
    private var connector: HostConnector?
    /// The address of the new connection, until a response has arrived over it.
    private var connectedTo: IPAddress?
    /// Set if libcurl ran the transfer before and then asked for a connection.
    private(set) var curlTransfer: Transfer?
    /// When the transfer started to need a connection, relative to its start.
    private var connectingSince = Duration.zero

    init(_ key: HostLimiter.Key, _ target: TransferTarget, _ reporter: TransferReporter) {
        self.key = key
        self.target = target
        self.reporter = reporter
    }

    /// Records that the transfer no longer waits for other transfers.
    func begin(_ loop: EventLoop) {
        timer.map(loop.cancel)
        timer = nil
        reporter.recordBegin()
    }

    /// Starts to connect, after a name lookup if there are no addresses yet.
    ///
    /// - Parameter curlTransfer: The transfer, if libcurl has run it before.
    func connect(_ curlTransfer: Transfer?, with connector: HostConnector) {
        self.curlTransfer = curlTransfer
        paused = curlTransfer?.paused ?? paused
        connectingSince = reporter.elapsed
        self.connector = connector
        stage = .connecting
        let request = target.request
        let deadline = request.totalTimeout.map { reporter.metrics.startedAt + $0 }
        let remaining = (request.totalTimeout ?? .seconds(Int32.max)) - connectingSince
        connector.assumeIsolated { [target] connector in
            connector.start(timeout: min(request.connectTimeout, remaining), deadline: deadline)
            if target.needsLookup { connector.lookUp() } else { connector.connect(to: target.candidates) }
        }
    }

    /// Connects to the addresses that were looked up.
    func lookedUp(_ outcome: NameResolver.Outcome) throws(TransferFailure) {
        reporter.recordLookup(outcome)
        switch outcome {
        case .success(let addresses): try target.setAddresses(addresses)
        case .failure(let failure): throw .noAddress(failure)
        }
        connector?.assumeIsolated { [target] in $0.connect(to: target.candidates) }
    }

    /// Records that a connection was made.
    func isConnected(to address: IPAddress) {
        connectedTo = address
        reporter.recordConnection()
    }

    /// Connects again if the transfer waits for a connection.
    func reconnect() {
        connector?.assumeIsolated { $0.reconnect() }
    }

    /// Stops the name lookup and the connection attempts.
    func stopConnecting() -> HostConnector.Interruption {
        connector?.assumeIsolated { $0.stop() } ?? .none
    }

    /// Makes the address preferred, because a response has arrived over the new connection.
    func hasResponse() {
        guard let address = connectedTo else { return }
        connector?.assumeIsolated { $0.prefer(address) }
        (connectedTo, connector) = (nil, nil)
    }

    /// Forgets the preferred address if there was no response: one that accepts connections and never responds must not
    /// stay preferred.
    func hasEnded() {
        guard let address = connectedTo else { return }
        connector?.assumeIsolated { $0.avoid(address) }
    }

    /// Returns the request with its timeouts reduced by the elapsed time.
    ///
    /// - Parameter isConnected: Whether part of that time was spent on connecting.
    func remainingTarget(isConnected: Bool) -> TransferTarget {
        var target = target
        let elapsed = reporter.elapsed
        if isConnected { target.request.connectTimeout -= elapsed - connectingSince }
        target.request.totalTimeout = target.request.totalTimeout.map { $0 - elapsed }
        return target
    }

    /// Ends the transfer while libcurl does not run it.
    func end(_ failure: TransferFailure, _ loop: EventLoop) {
        timer.map(loop.cancel)
        _ = stopConnecting()
        if let curlTransfer { curlTransfer.finish(unconnected: failure) } else { reporter.end(failure) }
    }

    /// Changes the directions that will be paused when libcurl runs the transfer.
    ///
    /// - Parameter directions: The directions to pause; `nil` to resume all.
    func setPause(_ directions: TransferPause?) {
        paused = directions.map(paused.union) ?? []
    }
}
