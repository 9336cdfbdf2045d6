/// The target of a watch: one host, or the network in general.
public enum PathTarget: Hashable, Sendable {
    /// One host.
    // Indirect, so that the many statuses of a host share one copy of it.
    indirect case host(NetworkHost)

    /// The network in general: reachable while this machine has a working route out, by IPv4 or IPv6.
    ///
    /// A route out is any working route that covers one of ``PathMonitor/Configuration/generalAddresses``. Usually it
    /// is the default route, but a policy rule or a full routing table may select another one. No packet is sent to
    /// these addresses.
    ///
    /// A search for a default route would miss such routes: a machine with policy rules or a full table may have no
    /// default route in its main table. A lookup of 0.0.0.0 would not help, because the kernel answers it with the
    /// loopback interface.
    case general
}

extension PathTarget: CustomStringConvertible {
    /// The text of the host, or `general` for ``general``.
    public var description: String {
        switch self {
        case .host(let host): host.text
        case .general: "general"
        }
    }
}
