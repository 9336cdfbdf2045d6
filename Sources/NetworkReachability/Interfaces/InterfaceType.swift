/// What kind of network interface something is.
///
/// The raw value is the form in machine-readable output.
public enum InterfaceType: String, Hashable, Sendable, CaseIterable {
    /// The machine itself.
    case loopback
    /// Wired Ethernet, and whatever cannot be told from it: a telephone tethered by USB, a virtual
    /// machine's card, and, where sysfs cannot be read, Wi-Fi.
    case ethernet
    /// IEEE 802.11.
    case wifi
    /// A mobile network (WWAN).
    case cellular
    /// A Bluetooth personal area network.
    case bluetooth
    /// IP over InfiniBand.
    case infiniband
    /// A software switch over its ports.
    case bridge
    /// Several interfaces used as one: bond or team.
    case bond
    /// A share of another interface with a tag of its own.
    case vlan
    /// A share of another interface with an address of its own: macvlan, ipvlan and their taps.
    case macvlan
    /// A cable between two network namespaces: usually a container's.
    case veth
    /// An interface whose packets travel inside other packets, or through a program: WireGuard, tun, VXLAN,
    /// GRE, …
    case tunnel
    /// PPP: a DSL line or a serial modem, which the interface does not tell.
    case pointToPoint
    /// Anything else.
    case other
}

extension InterfaceType: CustomStringConvertible {
    /// The type in words for a person.
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

extension NetworkReachabilityManager.ConnectionType {
    /// The kind of connection that a medium makes; see ``NetworkInterface/medium``.
    ///
    /// Bluetooth and PPP may end in a telephone, but nothing on this machine's side says so.
    init(medium: InterfaceType) {
        self = medium == .cellular ? .wwan : .ethernetOrWiFi
    }
}
