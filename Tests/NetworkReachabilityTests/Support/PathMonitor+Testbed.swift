internal import NetwatchTestSupport
internal import NetworkReachability

extension PathMonitor.Configuration {
    /// Creates the default configuration for a network namespace.
    init(in namespace: NetworkNamespace) {
        self.init()
        networkNamespace = namespace.path
    }

    /// Turns off all lookups without an event, so that only the test causes lookups.
    mutating func disablePeriodicLookups() {
        confirmDelay = .seconds(3600)
        auditInterval = .seconds(3600)
    }
}

extension PathMonitor {
    /// Watches a host and records all statuses that the watch delivers.
    func record(_ host: String) -> (statuses: Recorder<PathStatus>, watch: PathWatch) {
        record(.host(NetworkHost(host)!))
    }

    /// Watches a target and records all statuses that the watch delivers.
    func record(_ target: PathTarget) -> (statuses: Recorder<PathStatus>, watch: PathWatch) {
        let statuses = Recorder<PathStatus>()
        return (statuses, watch(target) { statuses.record($0) })
    }
}
