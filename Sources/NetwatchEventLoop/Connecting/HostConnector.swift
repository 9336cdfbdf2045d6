/// Connects to a host: looks its name up if necessary, and connects to the first address that answers.
///
/// Runs on its loop's thread. The name lookup and the connection attempts have a common timeout.
package actor HostConnector {
    /// A step that has ended.
    package enum Event: Sendable {
        /// The lookup has ended. After a success the owner must call ``HostConnector/connect(to:)`` or
        /// ``HostConnector/stop()``.
        case resolved(NameResolver.Outcome)
        /// No thread had started the lookup in time if `hasStarted` is false.
        case lookupTimedOut(hasStarted: Bool)
        case connected(Connector.Connection)
        case failed(ConnectionFailure)
        /// No attempt has succeeded within this timeout.
        case connectTimedOut(Duration, ConnectionFailure)
    }

    /// The step that ``HostConnector/stop()`` has interrupted.
    package enum Interruption: Sendable {
        case none
        /// No thread had started the lookup if `hasStarted` is false.
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

    /// - Parameters:
    ///   - host: A name or an address.
    ///   - port: The port, 1 to 65535.
    ///   - loop: The loop on which to connect, in its network namespace.
    ///   - onEvent: Called on the loop's thread, possibly before ``connect(to:)`` returns. Never called after
    ///     ``stop()``.
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

    /// Starts the timeout for the lookup and the connection together.
    ///
    /// - Parameters:
    ///   - timeout: The timeout. It begins again when a lookup that waited for a thread is started.
    ///   - deadline: The time after which it does not begin again; `nil` for no limit.
    package func start(timeout: Duration, deadline: ContinuousClock.Instant?) {
        timer = loop.schedule(at: .now + timeout) {
            self.assumeIsolated { $0.timedOut(timeout, deadline) }
        }
    }

    /// Looks the host up.
    package func lookUp() {
        let lookup = resolver.resolve(host) { outcome in
            self.loop.execute { self.assumeIsolated { $0.lookedUp(outcome) } }
        }
        stage = .lookingUp(lookup)
    }

    /// Connects to one of the host's addresses, the preferred one first.
    package func connect(to candidates: [ConnectionCandidate]) {
        let preferred = preferredAddresses.address(of: host, port: port)
        let race = ConnectionRace(candidates, preferring: preferred)
        let connector = Connector(loop: loop, race: race, port: port) { outcome in
            self.assumeIsolated { $0.connected(outcome) }
        }
        stage = .connecting(connector, to: candidates)
        connector.assumeIsolated { $0.start() }
    }

    /// Closes the connecting sockets and connects again. Without effect before ``connect(to:)`` and after its end.
    package func reconnect() {
        guard case .connecting(let connector, let candidates) = stage else { return }
        connector.assumeIsolated { _ = $0.stop() }
        connect(to: candidates)
    }

    /// Abandons the lookup and closes the connecting sockets.
    @discardableResult
    package func stop() -> Interruption {
        onEvent = nil
        return interrupt()
    }

    /// Makes the next connection to the host try this address first.
    package func prefer(_ address: IPAddress) {
        preferredAddresses.remember(address, of: host, port: port)
    }

    /// Undoes ``prefer(_:)``.
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
            resolver.markUnreachable(host)
            onEvent?(.failed(failure))
        }
    }

    private func timedOut(_ timeout: Duration, _ deadline: ContinuousClock.Instant?) {
        if case .lookingUp(let lookup) = stage, let start = resolver.start(of: lookup) {
            let end = min(start + timeout, deadline ?? start + timeout)
            if end > .now { return self.start(timeout: end - .now, deadline: deadline) }
        }
        switch interrupt() {
        case .none: break
        case .lookup(let hasStarted): onEvent?(.lookupTimedOut(hasStarted: hasStarted))
        case .connecting(let failure):
            resolver.markUnreachable(host)
            onEvent?(.connectTimedOut(timeout, failure))
        }
    }
}
