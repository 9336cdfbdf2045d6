/// The target of a watch: one host, or the network in general.
public enum PathTarget: Hashable, Sendable {
    /// The routes to one host.
    // Indirect, like the path of a verdict, so that the many statuses of a host share one copy of it.
    indirect case host(NetworkHost)

    /// Whether this machine has a working route out in either family. No packet is sent.
    ///
    /// That is either a working default route or another route that covers one of
    /// ``PathMonitor/Configuration/generalAddresses``. Such a route may come from a policy rule or from a full
    /// routing table.
    ///
    /// A lookup of 0.0.0.0 would not do, because the kernel answers it with the loopback interface. A search for a
    /// default route would not do either: a machine with a full table or with policy rules may have none in its main
    /// table.
    case general
}

extension PathTarget: CustomStringConvertible {
    /// The host's text, or `general`.
    public var description: String {
        switch self {
        case .host(let host): host.text
        case .general: "general"
        }
    }
}
