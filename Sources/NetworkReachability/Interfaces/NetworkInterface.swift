public import NetwatchEventLoop

/// A network interface at one moment.
public struct NetworkInterface: Hashable, Sendable {
    /// The interface index. It identifies the interface for its whole lifetime, whereas the name can change.
    public let index: UInt32
    /// The interface name.
    public let name: String
    /// The type of the interface.
    public let type: InterfaceType
    /// The type of the interface that finally carries the packets. For example, ``InterfaceType/wifi`` for a bridge
    /// over Wi-Fi, or ``InterfaceType/ethernet`` for a WireGuard tunnel over Ethernet.
    ///
    /// The same as ``type`` if this interface carries the packets itself, or if the lower interface is unknown.
    public let medium: InterfaceType
    /// Whether the interface is administratively up.
    public let isUp: Bool
    /// Whether packets can leave through the interface: a cable is plugged in or a radio is associated.
    public let hasCarrier: Bool
    /// Whether the interface is a tunnel or one of the interfaces below it is a tunnel.
    public let isTunnel: Bool
    /// All addresses of the interface, in the kernel's order.
    public let assignedAddresses: [AssignedAddress]
    /// The maximum size of a packet in bytes (MTU).
    public let mtu: Int
    /// Whether traffic on the interface is metered.
    public let metered: Metered

    /// The addresses that the interface can send from, in the kernel's order.
    public var addresses: [IPAddress] { assignedAddresses.filter(\.isUsable).map(\.address) }

    /// An address of an interface.
    public struct AssignedAddress: Hashable, Sendable {
        /// The address.
        public let address: IPAddress
        /// The length of the network prefix in bits.
        public let prefixLength: Int
        /// Whether packets can be sent from the address. False while duplicate address detection (RFC 4862 §5.4) is
        /// running, and after it failed.
        public let isUsable: Bool
    }

    /// Whether the traffic of an interface costs money or is limited.
    ///
    /// The kernel does not know this, and netwatch does not query a network manager. Mobile networks count as metered,
    /// as in desktop environments. Loopback is not metered. All other interfaces are ``unknown``.
    public enum Metered: String, Hashable, Sendable {
        /// The traffic is probably metered: the interface uses a mobile network.
        case yes
        /// The traffic is not metered: it does not leave this machine.
        case no
        /// Whether the traffic is metered is not known.
        case unknown
    }
}

extension NetworkInterface.Metered {
    init(medium: InterfaceType) {
        switch medium {
        case .cellular: self = .yes
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

/// The type of a network interface.
///
/// The raw value is the name of the type in machine-readable output.
public enum InterfaceType: String, Hashable, Sendable, CaseIterable {
    /// The loopback interface.
    case loopback
    /// Wired Ethernet, or an interface that looks the same to netwatch: a phone tethered over USB or the network card
    /// of a virtual machine. Wi-Fi also has this type if sysfs cannot be read.
    case ethernet
    /// Wi-Fi (IEEE 802.11).
    case wifi
    /// A mobile network (WWAN).
    case cellular
    /// A Bluetooth personal area network.
    case bluetooth
    /// IP over InfiniBand.
    case infiniband
    /// A software bridge with its ports.
    case bridge
    /// Several interfaces combined into one: bond or team.
    case bond
    /// A VLAN: a tagged subinterface of another interface.
    case vlan
    /// A subinterface with its own address: macvlan, ipvlan and their taps.
    case macvlan
    /// A virtual cable between two network namespaces, usually to a container.
    case veth
    /// A tunnel, such as WireGuard, tun, VXLAN or GRE. Its packets are encapsulated in other packets or processed by
    /// a program.
    case tunnel
    /// PPP, over a DSL line or a serial modem. The kernel does not show which of the two.
    case pointToPoint
    /// Any other type.
    case other
}

extension InterfaceType: CustomStringConvertible {
    /// A human-readable name of the type.
    public var description: String {
        switch self {
        case .ethernet: "Ethernet"
        case .wifi: "Wi-Fi"
        case .bluetooth: "Bluetooth"
        case .infiniband: "InfiniBand"
        case .vlan: "VLAN"
        case .pointToPoint: "PPP"
        case .loopback, .cellular, .bridge, .bond, .macvlan, .veth, .tunnel, .other: rawValue
        }
    }
}
