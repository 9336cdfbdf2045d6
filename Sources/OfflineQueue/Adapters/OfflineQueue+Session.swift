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

/// The `HostGate` of a running queue: it reports an endpoint's state as the path monitor determines it.
struct MonitorGate: HostGate {
    let monitor: PathMonitor
    var metered = MeteredInterfaces(patterns: [])

    func watch(_ endpoint: Endpoint, report: @escaping @Sendable (GateState) -> Void) -> (any GateWatch)? {
        guard let host = NetworkHost(endpoint.host) else {
            // A URL may contain a host that the monitor does not accept. The queue tries requests to such a host without
            // knowing whether there is a path.
            report(.unknown)
            return nil
        }
        var options = PathOptions()
        options.port = UInt16(exactly: endpoint.port)
        return monitor.watch(.host(host), options: options) { [metered] in report(GateState($0, metered)) }
    }

    func state(of endpoint: Endpoint) async -> GateState? {
        guard let host = NetworkHost(endpoint.host) else { return nil }
        return await withCheckedContinuation { [metered] continuation in
            monitor.lookUp(.host(host), port: UInt16(exactly: endpoint.port)) { answer in
                continuation.resume(
                    returning: answer.map { GateState($0.verdict, generation: $0.generation, metered) }
                )
            }
        }
    }
}

extension PathWatch: GateWatch {}

extension GateState {
    fileprivate init(_ status: PathStatus, _ metered: MeteredInterfaces) {
        self.init(status.verdict, generation: status.pathGeneration, route: status.routeGeneration, metered)
    }

    fileprivate init(
        _ verdict: PathStatus.Verdict,
        generation: UInt64,
        route: UInt64? = nil,
        _ metered: MeteredInterfaces
    ) {
        switch verdict {
        case .reachable(let path):
            let interface = PathInterface(path, metered)
            self = .reachable(generation: generation, route: route, interface: interface)
        case .notReachable(let reason): self = .down(reason)
        case .unknown: self = .unknown
        }
    }
}

extension PathInterface {
    /// Returns `nil` if netlink is unavailable, so that the interface is not known.
    fileprivate init?(_ path: NetworkPath, _ metered: MeteredInterfaces) {
        guard !path.interfaceName.isEmpty else { return nil }
        // A path to this machine itself leads through the loopback interface, and costs nothing.
        let kind = path.isLocal ? .loopback : path.medium
        let isMetered = !path.isLocal && metered.contains(name: path.interfaceName, kind: kind)
        self.init(kind: kind, isMetered: isMetered, binding: path.binding)
    }
}
