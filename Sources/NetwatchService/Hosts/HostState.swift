/// Whether a host is up.
package enum HostState: Hashable, Sendable {
    /// Nothing is known: the host has not been probed over its path yet, or netlink is unavailable.
    case unknown
    /// The host responds as expected.
    case up
    /// The host cannot be used, for this reason.
    case down(OutageCause)
}

extension HostState {
    /// The cause of the outage; `nil` if the host is not down.
    package var cause: OutageCause? {
        if case .down(let cause) = self { cause } else { nil }
    }
}

/// Which side an outage of a host is on. There is no unknown side: while the state of the host is unknown, nothing tells
/// whether there is an outage, and this time counts neither for nor against the host.
package enum OutageCause: String, Hashable, Sendable, CaseIterable {
    /// This machine has no path to the host, or a captive portal blocks the path.
    case local
    /// There is a path to the host, but the host does not respond as expected.
    case remote
}

/// One observation of a host.
package enum HostReport: Hashable, Sendable {
    /// The kernel could not be asked for a path.
    case unknown(String)
    /// The kernel has no path to the host.
    case noPath(String)
    /// The kernel has a path to the host, which has not been probed yet.
    case path
    /// A probe succeeded. The latency is `nil` if the check sends nothing.
    case success(latency: Duration?)
    /// A captive portal responded instead of the host.
    case captive(String)
    /// A probe failed.
    case failure(String)
}
