/// What is watched: one host, or the way out in general.
public enum PathTarget: Hashable, Sendable {
    /// The routes to one host.
    case host(NetworkHost)

    /// Whether this machine has a route to the public Internet in either family. No packet is sent.
    ///
    /// Judged by the routes to two of the root name servers, whose addresses are as stable and as widely
    /// routed as any (`a.root-servers.net`, IANA root hints). Neither 0.0.0.0 nor a search for a default
    /// route would do: the kernel answers a lookup of 0.0.0.0 with the loopback interface, and a machine
    /// with a full table, or with policy rules, may have no default route in its main table.
    case general

    /// The addresses that decide about ``general``.
    static let representativeAddresses = [IPAddress("198.41.0.4")!, IPAddress("2001:503:ba3e::2:30")!]
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
