internal import NetworkReachability

/// Lets the path monitor tell the queue when a host is worth trying.
struct MonitorGate: HostGate {
    let monitor: PathMonitor

    func watch(host: String) -> AsyncStream<GateState> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            guard let host = NetworkHost(host) else {
                // A host that a URL may have and we cannot judge is simply tried.
                continuation.yield(.unknown)
                return
            }
            let watch = monitor.watch(.host(host)) { continuation.yield(GateState($0)) }
            continuation.onTermination = { _ in watch.cancel() }
        }
    }
}

extension GateState {
    fileprivate init(_ status: PathStatus) {
        switch status.verdict {
        case .reachable: self = .reachable(generation: status.pathGeneration)
        case .notReachable: self = .notReachable
        case .unknown: self = .unknown
        }
    }
}
