public import NetwatchEventLoop

/// A network interface at one moment.
public struct NetworkInterface: Hashable, Sendable {
    /// Its index, which is its identity: names change.
    public let index: UInt32
    /// Its name.
    public let name: String
    /// What it is.
    public let type: InterfaceType
    /// What carries its packets in the end: the Wi-Fi under a bridge, the Ethernet under a WireGuard tunnel.
    /// The same as ``type`` for what rests on nothing, or on something that cannot be told.
    public let medium: InterfaceType
    /// Whether it is switched on.
    public let isUp: Bool
    /// Whether packets can leave by it: a cable is in, a radio is associated.
    public let hasCarrier: Bool
    /// Whether it is a tunnel, or rests on one.
    public let isTunnel: Bool
    /// The addresses that it can send from, in the kernel's order.
    public let addresses: [IPAddress]
    /// The largest packet it takes, in bytes.
    public let mtu: Int
    /// Whether its traffic costs money.
    public let metered: Metered

    /// Whether the traffic of an interface costs money or is limited.
    ///
    /// The kernel does not know. A mobile network is taken to cost, as desktops take it; of everything else
    /// only a network manager could tell, and it is not asked.
    public enum Metered: String, Hashable, Sendable {
        /// It does, or is to be treated so.
        case yes
        /// It does not.
        case no
        /// It could not be told.
        case unknown
    }
}

extension NetworkInterface.Metered {
    init(medium: InterfaceType) {
        switch medium {
        case .cellular: self = .yes
        // It leaves the machine not at all.
        case .loopback: self = .no
        default: self = .unknown
        }
    }
}

extension NetworkInterface: CustomStringConvertible {
    /// The interface in words for a person: `eth0 (Ethernet): up, 192.0.2.7, 2001:db8::7`.
    public var description: String {
        let state = hasCarrier ? "up" : isUp ? "no carrier" : "down"
        let kind = medium == type ? "\(type)" : "\(type) over \(medium)"
        return (["\(name) (\(kind)): \(state)"] + addresses.map(\.description)).joined(separator: ", ")
    }
}
