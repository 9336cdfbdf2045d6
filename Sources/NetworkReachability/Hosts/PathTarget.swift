/// What is watched: one host, or the way out in general.
public enum PathTarget: Hashable, Sendable {
    /// The routes to one host.
    // Indirect, as the path of a verdict is: whoever watches many hosts has each in many statuses.
    indirect case host(NetworkHost)

    /// Whether this machine has a way out in either family: a default route that works, or another route,
    /// of a policy rule or of a full table, that covers one of
    /// ``PathMonitor/Configuration/generalAddresses``. No packet is sent.
    ///
    /// Neither 0.0.0.0 nor a search for a default route would do: the kernel answers a lookup of 0.0.0.0 with
    /// the loopback interface, and a machine with a full table, or with policy rules, may have no default
    /// route in its main table.
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
