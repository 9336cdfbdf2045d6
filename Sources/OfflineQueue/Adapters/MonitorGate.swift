internal import NetworkReachability

/// Notifies the queue through the path monitor when a host becomes worth trying.
struct MonitorGate: HostGate {
    let monitor: PathMonitor

    func watch(host: String) -> AsyncStream<GateState> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            guard let host = NetworkHost(host) else {
                // A URL may contain a host that the monitor cannot judge. Requests to it are simply tried.
                continuation.yield(.unknown)
                return
            }
            let watch = monitor.watch(.host(host)) { continuation.yield(GateState($0)) }
            continuation.onTermination = { _ in watch.cancel() }
        }
    }

    func state(of host: String) async -> GateState? {
        guard let host = NetworkHost(host) else { return nil }
        return await withCheckedContinuation { continuation in
            monitor.lookUp(.host(host)) { answer in
                continuation.resume(
                    returning: answer.map { GateState($0.verdict, generation: $0.generation) }
                )
            }
        }
    }
}

extension GateState {
    fileprivate init(_ status: PathStatus) {
        self.init(status.verdict, generation: status.pathGeneration, route: status.routeGeneration)
    }

    fileprivate init(_ verdict: PathStatus.Verdict, generation: UInt64, route: UInt64? = nil) {
        switch verdict {
        case .reachable: self = .reachable(generation: generation, route: route)
        case .notReachable: self = .notReachable
        case .unknown: self = .unknown
        }
    }
}
