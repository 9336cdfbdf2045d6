internal import NetwatchEventLoop

/// The engine's record of a transfer, from its start to its end.
///
/// It is confined to the engine's thread.
final class EngineTransfer {
    enum Stage {
        /// The transfer waits for other transfers to the same host.
        case waiting
        /// The transfer waits for its name lookup or its connection.
        case connecting
        /// The transfer waits for the program to decide whether the server is trusted.
        case deciding
        /// libcurl runs the transfer.
        case running
    }

    let host: HostLimiter.Host
    let target: TransferTarget
    let reporter: TransferReporter
    var stage = Stage.waiting
    /// The multi handle that runs or will run the transfer; `nil` until the transfer begins.
    var multi: MultiTable.ID?
    /// The timer of the total timeout while the transfer waits for others, or of the time limit of the program's
    /// decision.
    var timer: EventLoop.Timer?
    private(set) var paused: TransferPause = []
    /// The connector of the transfer. Set while it connects, and until a response has arrived over the new connection.
    private var connector: HostConnector?
    /// The address of the new connection, until a response has arrived over it.
    private var connectedTo: IPAddress?
    /// The transfer that libcurl ran until it needed another connection; `nil` if libcurl has not run it yet.
    private(set) var curlTransfer: Transfer?
    /// The time at which the transfer began to connect, relative to its start.
    private var connectingSince = Duration.zero

    init(_ host: HostLimiter.Host, _ target: TransferTarget, _ reporter: TransferReporter) {
        self.host = host
        self.target = target
        self.reporter = reporter
    }

    /// Records that the transfer no longer waits for other transfers.
    func begin(_ loop: EventLoop) {
        stopTimer(loop)
        if curlTransfer == nil { reporter.recordBegin() }
    }

    func stopTimer(_ loop: EventLoop) {
        timer.map(loop.cancel)
        timer = nil
    }

    /// Begins to connect. Looks up the host's name first if the addresses are not known.
    func connect(with connector: HostConnector) {
        connectingSince = reporter.elapsed
        self.connector = connector
        stage = .connecting
        let request = target.request
        let deadline = request.totalTimeout.map { reporter.metrics.startedAt + $0 }
        let remaining = (request.totalTimeout ?? .seconds(Int32.max)) - connectingSince
        let timeout = min(request.connectTimeout, remaining)
        let candidates = target.needsLookup ? nil : target.candidates
        connector.assumeIsolated { connector in
            connector.start(timeout: timeout, deadline: deadline)
            if let candidates { connector.connect(to: candidates) } else { connector.lookUp() }
        }
    }

    /// Records the transfer that libcurl ran until it needed another connection.
    func takeBack(_ curlTransfer: Transfer) {
        self.curlTransfer = curlTransfer
        paused = curlTransfer.paused
    }

    /// Records that the transfer waits for the program's decision. Returns the maximum time that it may wait.
    func waitForDecision() -> Duration {
        stage = .deciding
        let request = target.request
        let limits = [request.idleTimeout, request.totalTimeout.map { $0 - reporter.elapsed }]
        return limits.reduce(TrustQuestions.timeout) { min($0, $1 ?? $0) }
    }

    /// Records the result of the name lookup, and connects to the addresses.
    ///
    /// - Throws: ``TransferFailure`` if the lookup failed or the transfer can use none of the addresses.
    func lookedUp(_ outcome: NameResolver.Outcome) throws(TransferFailure) {
        reporter.recordLookup(outcome)
        switch outcome {
        case .success(let addresses): try target.setAddresses(addresses)
        case .failure(let failure): throw .unresolved(target.url.host, failure)
        }
        let candidates = target.candidates
        connector?.assumeIsolated { $0.connect(to: candidates) }
    }

    /// Records that a connection was made.
    func isConnected(to address: IPAddress) {
        connectedTo = address
        let port = UInt16(clamping: target.url.port)
        reporter.recordConnection(to: ConnectionPeer(address: address, port: port))
    }

    /// Begins the connection attempts again immediately. Has no effect unless connection attempts are in progress.
    func reconnect() {
        connector?.assumeIsolated { $0.reconnect() }
    }

    /// Stops the name lookup and the connection attempts. Returns what was interrupted.
    func stopConnecting() -> HostConnector.Interruption {
        connector?.assumeIsolated { $0.stop() } ?? .none
    }

    /// Makes the connected address the preferred one of its host. Called when a response has arrived over the new
    /// connection.
    func hasResponse() {
        guard let address = connectedTo else { return }
        connector?.assumeIsolated { $0.prefer(address) }
        (connectedTo, connector) = (nil, nil)
    }

    /// Stops preferring the connected address if no response has arrived from it. An address that accepts connections
    /// and never responds must not stay preferred.
    func hasEnded() {
        guard let address = connectedTo else { return }
        connector?.assumeIsolated { $0.avoid(address) }
    }

    /// Returns the deadlines of the request, which libcurl is about to run.
    ///
    /// - Parameter isConnected: Whether the engine has just connected. The time for connecting then counts towards the
    ///   connection timeout.
    func deadlines(isConnected: Bool) -> TransferDeadlines {
        let start = reporter.metrics.startedAt
        return TransferDeadlines(
            connection: (isConnected ? start + connectingSince : .now) + target.request.connectTimeout,
            end: target.request.totalTimeout.map { start + $0 }
        )
    }

    /// Ends a transfer that libcurl does not run at the moment.
    func end(_ failure: TransferFailure, _ loop: EventLoop) {
        stopTimer(loop)
        _ = stopConnecting()
        if let curlTransfer { curlTransfer.finish(unconnected: failure) } else { reporter.end(failure) }
    }

    /// Changes the directions in which the transfer will be paused when libcurl runs it.
    ///
    /// - Parameter directions: The directions to pause in addition; `nil` to resume all.
    func setPause(_ directions: TransferPause?) {
        paused = directions.map(paused.union) ?? []
    }
}

/// The origins to which requests use HTTP/1.1, because HTTP/2 has failed there. A value without a clock.
///
/// Some servers send fields in HTTP/2 responses that HTTP/2 forbids, such as `Upgrade` (RFC 9113 §8.2.2), for example
/// nginx in front of Apache. The same response is valid in HTTP/1.1. Without this memory the server would execute each
/// repetition of a request, and none would ever get a response. The engine does not send the failed request again:
/// whether it may be sent twice is the caller's decision.
struct HTTP1Origins {
    /// The maximum number of origins. A further one replaces the one that was added first.
    static let limit = 256
    /// The time after which HTTP/2 is tried again: a day. By then the server may have been repaired.
    static let lifetime = Duration.seconds(24 * 3600)

    /// The time from which HTTP/2 is used again, by origin.
    private var ends: [String: BootInstant] = [:]

    /// Returns whether requests to an origin use HTTP/1.1.
    func contains(_ origin: String, at now: @autoclosure () -> BootInstant) -> Bool {
        ends[origin].map { $0 > now() } ?? false
    }

    /// Records that HTTP/2 has failed at an origin.
    mutating func insert(_ origin: String, at now: BootInstant) {
        ends[origin] = now + Self.lifetime
        guard ends.count > Self.limit, let first = ends.min(by: { $0.value < $1.value }) else { return }
        ends[first.key] = nil
    }

    /// Records that an origin does not speak HTTP/1.1 either.
    mutating func remove(_ origin: String) {
        ends[origin] = nil
    }
}
