internal import NetwatchTestSupport
internal import NetworkReachability

extension PathMonitor.Configuration {
    /// Creates a configuration with the default values, except that it watches the given network namespace.
    init(in namespace: NetworkNamespace) {
        self.init()
        networkNamespace = namespace.path
    }

    /// Turns off the lookups after a delay and at intervals. Then only kernel notifications cause lookups.
    mutating func disablePeriodicLookups() {
        confirmDelay = .seconds(3600)
        auditInterval = .seconds(3600)
        faults.ignoresLifetimes = true
    }
}

extension PathMonitor {
    /// Watches a host. The recorder receives all statuses.
    func record(_ host: String) -> (statuses: Recorder<PathStatus>, watch: PathWatch) {
        record(.host(NetworkHost(host)!))
    }

    /// Watches a target. The recorder receives all statuses.
    func record(_ target: PathTarget) -> (statuses: Recorder<PathStatus>, watch: PathWatch) {
        let statuses = Recorder<PathStatus>()
        return (statuses, watch(target) { statuses.record($0) })
    }
}
