internal import ClientCore
internal import NetwatchEventLoop
internal import NetworkReachability

/// The `PortalDetector` of a running queue: it probes the path that the path monitor reports.
///
/// Hosts whose packets take the same path share a probe, so that many hosts need only one after a path change. They
/// also share its failure: if the probe's server is down, only the first requests over a path wait for it.
actor PathPortalDetector: PortalDetector {
    /// What distinguishes paths: a portal is at the gateway, or between it and the interface.
    struct Route: Hashable {
        let interface: UInt32
        let source: IPAddress?
        let gateway: IPAddress?

        init(_ path: NetworkPath) {
            interface = path.interfaceIndex
            source = path.source
            gateway = path.gateway
        }
    }

    private let probe: CaptivePortalProbe
    private let path: @Sendable (Endpoint) async -> NetworkPath?
    private var running: [Route?: Task<PortalFinding, Never>] = [:]
    /// The routes whose last probe since the last path change failed.
    private var failed: Set<Route?> = []
    /// The number of path changes.
    private var changes = 0

    init(_ probe: CaptivePortalProbe, _ monitor: PathMonitor) {
        self.init(probe) { await monitor.path(to: $0) }
    }

    /// - Parameter path: Returns the current path to an endpoint; `nil` if it is not known. The probe then uses the
    ///   path to the server in its own URL.
    init(_ probe: CaptivePortalProbe, path: @escaping @Sendable (Endpoint) async -> NetworkPath?) {
        self.probe = probe
        self.path = path
    }

    func pathsChanged() {
        changes += 1
        failed = []
    }

    func hasFailed(pathTo endpoint: Endpoint) async -> Bool {
        let path = await path(endpoint)
        return path?.isLocal != true && failed.contains(path.map(Route.init))
    }

    func probe(pathTo endpoint: Endpoint) async -> PortalFinding {
        await probe(over: await path(endpoint))
    }

    func probe(over path: NetworkPath?) async -> PortalFinding {
        // No portal is on the way to this machine itself.
        if path?.isLocal == true { return .clear }
        let route = path.map(Route.init)
        // The probe of another host may have begun before the path changed, and then fails. A response that arrives now
        // shows the current path.
        if let earlier = running[route] {
            let finding = await earlier.value
            if finding != .failed || failed.contains(route) { return finding }
        }
        return await (running[route] ?? start(route, path)).value
    }

    func start(_ route: Route?, _ path: NetworkPath?) -> Task<PortalFinding, Never> {
        let changesBefore = changes
        let task = Task {
            let result = await probe.run(to: nil, over: path.map { [$0] } ?? [])
            running[route] = nil
            let finding = PortalFinding(result.validation)
            if finding != .failed { failed.remove(route) }
            if finding == .failed, changes == changesBefore { failed.insert(route) }
            return finding
        }
        running[route] = task
        return task
    }
}

extension PortalFinding {
    fileprivate init(_ validation: PathValidation) {
        switch validation {
        case .valid: self = .clear
        case .captive(let portal): self = .captive(page: portal.userPortalURL)
        case .failed, .none: self = .failed
        }
    }
}

extension PathMonitor {
    /// Returns the current path to a watched endpoint; `nil` if it is not known or there is none.
    fileprivate func path(to endpoint: Endpoint) async -> NetworkPath? {
        guard let host = NetworkHost(endpoint.host) else { return nil }
        return await withCheckedContinuation { continuation in
            lookUp(.host(host), port: UInt16(exactly: endpoint.port)) { answer in
                guard case .reachable(let path) = answer?.verdict else {
                    return continuation.resume(returning: nil)
                }
                continuation.resume(returning: path)
            }
        }
    }
}
