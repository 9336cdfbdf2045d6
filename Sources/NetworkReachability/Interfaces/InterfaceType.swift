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
