public import ClientCore
public import NetworkReachability

extension OfflineQueue {
    /// Creates a queue and opens its directory. The queue sends nothing before ``start()``.
    ///
    /// - Parameters:
    ///   - configuration: The directory and the settings of the queue.
    ///   - session: The session that sends the requests. Default `nil`: a new session with the same `monitor`. If the
    ///     session sends to a unix socket, no path is watched or probed, and requests are always tried.
    ///   - monitor: The monitor that reports when a host becomes reachable. Default `PathMonitor.shared`.
    /// - Throws: ``QueueError``: `invalidConfiguration`, `alreadyOwned` with the owner's process id,
    ///   `directoryUnusable`, `storeUnusable`, `storeUnavailable`, `storeFailed`.
    public init(
        configuration: Configuration,
        session: SessionManager? = nil,
        monitor: PathMonitor = .shared
    ) async throws {
        let session = session ?? SessionManager(monitor: monitor)
        let probe = try session.unixSocketPath == nil ? configuration.portalProbe() : nil
        try await self.init(
            configuration: configuration,
            sender: SessionSender(session: session),
            gate: session.unixSocketPath == nil
                ? MonitorGate(
                    monitor: monitor,
                    metered: MeteredInterfaces(patterns: configuration.meteredInterfaces)
                )
                : LocalGate(),
            portals: probe.map { PathPortalDetector($0, monitor) }
        )
    }
}

/// The `HostGate` of a queue whose session sends to a unix socket, which needs no network. Requests are always tried.
struct LocalGate: HostGate {
    /// The path through the socket. It never changes.
    private static let state = GateState.reachable(
        generation: 0,
        route: 0,
        interface: PathInterface(kind: .loopback, isMetered: false)
    )

    func watch(_ endpoint: Endpoint, report: @escaping @Sendable (GateState) -> Void) -> (any GateWatch)? {
        report(Self.state)
        return nil
    }

    func state(of endpoint: Endpoint) async -> GateState? { Self.state }
}
