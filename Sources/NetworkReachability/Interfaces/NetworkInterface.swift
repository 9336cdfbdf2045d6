public import NetwatchEventLoop

/// A network interface at one moment.
public struct NetworkInterface: Hashable, Sendable {
    /// The interface index, which identifies the interface. Names can change.
    public let index: UInt32
    /// The interface name.
    public let name: String
    /// The type of the interface.
    public let type: InterfaceType
    /// The type of the lowest interface that carries the packets: the Wi-Fi under a bridge, the Ethernet under a
    /// WireGuard tunnel. The same as ``type`` if there is no lower interface or if it is unknown.
    public let medium: InterfaceType
    /// Whether the interface is administratively up.
    public let isUp: Bool
    /// Whether packets can leave through the interface: a cable is plugged in or a radio is associated.
    public let hasCarrier: Bool
    /// Whether the interface is a tunnel or runs over one.
    public let isTunnel: Bool
    /// The addresses that the interface can send from, in the kernel's order.
    public let addresses: [IPAddress]
    /// The maximum packet size in bytes (MTU).
    public let mtu: Int
    /// Whether traffic on the interface is metered.
    public let metered: Metered

    /// Whether the traffic of an interface costs money or is limited.
    ///
    /// The kernel does not know this. Mobile networks count as metered, as in desktop environments. For other
    /// interfaces only a network manager would know, and netwatch does not query one.
    public enum Metered: String, Hashable, Sendable {
        /// The traffic is metered, or should be treated as metered.
        case yes
        /// The traffic is not metered.
        case no
        /// Unknown whether the traffic is metered.
        case unknown
    }
}

extension NetworkInterface.Metered {
    init(medium: InterfaceType) {
        switch medium {
        case .cellular: self = .yes
        // Loopback traffic never leaves the machine.
        case .loopback: self = .no
        default: self = .unknown
        }
    }
}

extension NetworkInterface: CustomStringConvertible {
    /// A human-readable description: `eth0 (Ethernet): up, 192.0.2.7, 2001:db8::7`.
    public var description: String {
        let state = hasCarrier ? "up" : isUp ? "no carrier" : "down"
        let kind = medium == type ? "\(type)" : "\(type) over \(medium)"
        return (["\(name) (\(kind)): \(state)"] + addresses.map(\.description)).joined(separator: ", ")
    }
}
