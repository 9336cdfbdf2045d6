/// A connector to one host. It looks up the host's name if necessary, and connects to the first address that answers.
///
/// It runs on its loop's thread. The name lookup and the connection attempts share one timeout.
package actor HostConnector {
    /// A step that has ended.
    package enum Event: Sendable {
        /// The lookup has ended. After a success, the owner must call ``HostConnector/connect(to:)`` or
        /// ``HostConnector/stop()``.
        case resolved(NameResolver.Outcome)
        /// The timeout expired during the lookup. `hasStarted` is `false` if no resolver thread had started the lookup
        /// by then.
        case lookupTimedOut(hasStarted: Bool)
        case connected(Connector.Connection)
        case failed(ConnectionFailure)
        /// The timeout expired before any connection attempt succeeded. The values are the timeout and the attempts.
        case connectTimedOut(Duration, ConnectionFailure)
    }

    /// The step that ``HostConnector/stop()`` interrupted.
    package enum Interruption: Sendable {
        case none
        /// The lookup. `hasStarted` is `false` if no resolver thread had started it.
        case lookup(hasStarted: Bool)
        case connecting(ConnectionFailure)
    }

    private enum Stage {
        case idle
        case lookingUp(NameResolver.Lookup)
        case connecting(Connector, to: [ConnectionCandidate])
    }

    private nonisolated let loop: EventLoop
    private let resolver: NameResolver
    private let preferredAddresses: PreferredAddresses
    private let host: String
    private let port: UInt16
    private var onEvent: (@Sendable (Event) -> Void)?
    private var stage = Stage.idle
    private var timer: EventLoop.Timer?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Creates a connector.
    ///
    /// - Parameters:
    ///   - host: A name or an IP address.
    ///   - port: The port, 1 to 65535.
    ///   - loop: The loop on which to connect. Its network namespace is used.
    ///   - resolver: The resolver that looks up the name.
    ///   - preferredAddresses: For each host, the addresses to try first. If the connector fails before it has tried
    ///     every address, the next one begins with the others.
    ///   - onEvent: Receives the events. Called on the loop's thread, possibly before ``connect(to:)`` returns, but not
    ///     after ``stop()``.
    package init(
        to host: String,
        port: UInt16,
        loop: EventLoop,
        resolver: NameResolver,
        preferredAddresses: PreferredAddresses,
        onEvent: @escaping @Sendable (Event) -> Void
    ) {
        self.host = host
        self.port = port
        self.loop = loop
        self.resolver = resolver
        self.preferredAddresses = preferredAddresses
        self.onEvent = onEvent
    }

    /// Starts the timeout that the lookup and the connection attempts share.
    ///
    /// - Parameters:
    ///   - timeout: The timeout. If the lookup waits for a resolver thread, the timeout begins again when a thread
    ///     starts the lookup.
    ///   - deadline: The latest end of the timeout if it begins again; `nil` for no limit.
    package func start(timeout: Duration, deadline: BootInstant?) {
        timer = loop.scheduleLimit(timeout) {
            self.assumeIsolated { $0.timedOut(timeout, deadline) }
        }
    }

    /// Looks up the host's name.
    package func lookUp() {
        let lookup = resolver.resolve(host) { outcome in
            self.loop.execute(on: self) { $0.lookedUp(outcome) }
        }
        stage = .lookingUp(lookup)
    }

    /// Connects to one of the candidates. The preferred addresses of the host come first.
    package func connect(to candidates: [ConnectionCandidate]) {
        let preferred = preferredAddresses.addresses(of: host, port: port)
        let race = ConnectionRace(candidates, preferring: preferred)
        let connector = Connector(loop: loop, race: race, port: port) { outcome in
            self.assumeIsolated { $0.connected(outcome) }
        }
        stage = .connecting(connector, to: candidates)
        connector.assumeIsolated { $0.start() }
    }

    /// Closes the connecting sockets and begins the connection attempts again. Has no effect if no connection attempt
    /// is in progress.
    package func reconnect() {
        guard case .connecting(let connector, let candidates) = stage else { return }
        connector.assumeIsolated { _ = $0.stop() }
        connect(to: candidates)
    }

    /// Abandons the lookup and closes the connecting sockets. Returns the step that was interrupted.
    @discardableResult
    package func stop() -> Interruption {
        onEvent = nil
        return interrupt()
    }

    /// Makes this address the preferred one, which the next connection to the host tries first.
    package func prefer(_ address: IPAddress) {
        preferredAddresses.remember([address], of: host, port: port)
    }

    /// Stops preferring this address. Has no effect if another address is preferred.
    package func avoid(_ address: IPAddress) {
        preferredAddresses.forget(address, of: host, port: port)
    }

    private func interrupt() -> Interruption {
        timer.map(loop.cancel)
        timer = nil
        defer { stage = .idle }
        switch stage {
        case .idle: return .none
        case .lookingUp(let lookup): return .lookup(hasStarted: !resolver.abandon(lookup))
        case .connecting(let connector, _):
            return .connecting(connector.assumeIsolated { $0.stop() })
        }
    }

    private func lookedUp(_ outcome: NameResolver.Outcome) {
        guard case .lookingUp = stage else { return }
        stage = .idle
        onEvent?(.resolved(outcome))
    }

    private func connected(_ outcome: Connector.Outcome) {
        guard case .connecting = stage else { return }
        stage = .idle
        timer.map(loop.cancel)
        timer = nil
        switch outcome {
        case .success(let connection): onEvent?(.connected(connection))
        case .failure(let failure):
            hasFailed(failure)
            onEvent?(.failed(failure))
        }
    }

    private func timedOut(_ timeout: Duration, _ deadline: BootInstant?) {
        if case .lookingUp(let lookup) = stage, let start = resolver.start(of: lookup) {
            let end = min(start + timeout, deadline ?? start + timeout)
            if end > .now { return self.start(timeout: end - .now, deadline: deadline) }
        }
        switch interrupt() {
        case .none: break
        case .lookup(let hasStarted): onEvent?(.lookupTimedOut(hasStarted: hasStarted))
        case .connecting(let failure):
            hasFailed(failure)
            onEvent?(.connectTimedOut(timeout, failure))
        }
    }

    private func hasFailed(_ failure: ConnectionFailure) {
        resolver.markUnreachable(host)
        preferredAddresses.remember(failure.resumption, of: host, port: port)
    }
}

/// For each host, the addresses that the next connection tries first. They are one of these:
///
/// - the last address that worked, so that a connection does not wait for dead addresses;
/// - after a failure, the addresses for which there was no time (``ConnectionFailure/resumption``).
package final class PreferredAddresses: Sendable {
    /// The maximum number of entries, one for each host and port. When it is reached, all entries are removed.
    private static let limit = 1024

    private struct Destination: Hashable {
        let host: String
        let port: UInt16
    }

    private let addresses = Lock<[Destination: [IPAddress]]>([:])

    package init() {}

    package func addresses(of host: String, port: UInt16) -> [IPAddress] {
        addresses.withLock { $0[Destination(host: host, port: port)] ?? [] }
    }

    /// Replaces the addresses of a host. Has no effect if there are none.
    package func remember(_ preferred: [IPAddress], of host: String, port: UInt16) {
        guard !preferred.isEmpty else { return }
        addresses.withLock { addresses in
            if addresses.count >= Self.limit { addresses = [:] }
            addresses[Destination(host: host, port: port)] = preferred
        }
    }

    /// Removes an address that accepted a connection but sent no response.
    package func forget(_ address: IPAddress, of host: String, port: UInt16) {
        let destination = Destination(host: host, port: port)
        addresses.withLock { $0[destination]?.removeAll { $0 == address } }
    }

    /// Removes all addresses. Called when the network has changed.
    package func removeAll() {
        addresses.withLock { $0 = [:] }
    }
}
