package import OfflineQueue

/// What the monitor knows about a host now.
package struct HostSnapshot: Hashable, Sendable {
    package let host: WatchedHost
    package var state = HostState.unknown
    /// Whether the host is up, but its last probe failed.
    package var isDegraded = false
    /// When the state began, in milliseconds since 1970; `nil` before the first observation.
    package var since: Int64?
    /// Why the host is down or unknown, or why its last probe failed.
    package var reason: String?
    /// The latency of the last successful probe.
    package var latency: Duration?
    /// When the last probe ended, in milliseconds since 1970.
    package var probedAt: Int64?
    /// When the last successful probe ended, in milliseconds since 1970.
    package var succeededAt: Int64?
    /// The numbers of probes and of state changes since the service began to watch the host.
    package var successes = 0
    package var failures = 0
    package var changes = 0
    /// The latencies of the successful probes since the service began to watch the host.
    package var latencies = DurationHistogram(limits: HostSnapshot.latencyLimits)

    /// From a host in the same network to the default timeout of a probe. Each limit is a time series of each host.
    private static let latencyLimits: [Duration] = [
        .milliseconds(1), .milliseconds(5), .milliseconds(25), .milliseconds(100), .milliseconds(500),
        .seconds(1), .seconds(5),
    ]

    package init(_ host: WatchedHost) {
        self.host = host
    }
}

extension HostSnapshot {
    /// The name of the state in outputs: `up`, `degraded`, `down` or `unknown`.
    package var stateName: String {
        switch state {
        case .unknown: "unknown"
        case .up: isDegraded ? "degraded" : "up"
        case .down: "down"
        }
    }
}
