public import NetwatchEventLoop

/// The path on which the kernel would send a packet: interface, source address, gateway and matching route.
///
/// If a route has several next hops, the kernel chooses one for each flow. This path is the kernel's choice for a TCP
/// connection whose source port is not known. If the choice depends on ports (`fib_multipath_hash_policy`), a
/// connection to the same address may use another next hop.
public struct NetworkPath: Hashable, Sendable {
    /// The destination address of the packet.
    public let destination: IPAddress
    /// The index of the outgoing interface. 0 if netlink is unavailable.
    public let interfaceIndex: UInt32
    /// The name of the interface at the time of the lookup. Empty if netlink is unavailable.
    public let interfaceName: String
    /// The type of the interface. ``InterfaceType/other`` if netlink is unavailable.
    public let interfaceType: InterfaceType
    /// The type of the interface that finally carries the packets, as ``NetworkInterface/medium``.
    /// ``InterfaceType/other`` if netlink is unavailable.
    public let medium: InterfaceType
    /// Whether the path leads through a tunnel. `false` if netlink is unavailable.
    public let isTunnel: Bool
    /// The address of the next router; `nil` if the interface reaches the destination directly. Also `nil` if netlink
    /// is unavailable.
    public let gateway: IPAddress?
    /// The source address of the packet; `nil` if the kernel did not report one.
    public let source: IPAddress?
    /// Whether the destination is this machine itself. A path with this property says nothing about the network.
    public let isLocal: Bool
    /// The prefix length of the matching route in bits: 0 for a default route, 32 (IPv4) or 128 (IPv6) for a host
    /// route.
    public var prefixLength: Int { Int(shortPrefixLength) }
    private let shortPrefixLength: UInt8
    /// The ID of the routing table that contains the matching route: 254 for the main table, 255 for the local table.
    /// Policy rules can select other tables. 0 if netlink is unavailable.
    public let table: UInt32
    /// The properties that ``PathOptions`` require. The kernel chose the others.
    private let required: Required
    /// A hash of the route of established connections if it differs from this path; otherwise 0.
    ///
    /// The kernel routes the packets of an established IPv6 connection with their source address, but new connections
    /// without one. If a policy rule depends on the source address, the results may differ. A connection does not
    /// survive a change of either.
    private let establishedRoute: Int

    /// Properties of a path that may be required.
    struct Required: OptionSet, Hashable {
        let rawValue: UInt8
        static let interface = Self(rawValue: 1)
        static let source = Self(rawValue: 2)
    }

    init(
        destination: IPAddress,
        interface: NetworkInterface?,
        gateway: IPAddress?,
        source: IPAddress?,
        isLocal: Bool,
        prefixLength: Int,
        table: UInt32,
        required: Required = [],
        establishedRoute: Int = 0
    ) {
        self.destination = destination
        interfaceIndex = interface?.index ?? 0
        interfaceName = interface?.name ?? ""
        interfaceType = interface?.type ?? .other
        medium = interface?.medium ?? .other
        isTunnel = interface?.isTunnel ?? false
        self.gateway = gateway
        self.source = source
        self.isLocal = isLocal
        shortPrefixLength = UInt8(clamping: prefixLength)
        self.table = table
        self.required = required
        self.establishedRoute = establishedRoute
    }

    /// Returns whether both paths have the same interface, source address and gateway, and established connections have
    /// the same route with both.
    func usesSameRoute(as other: NetworkPath) -> Bool {
        interfaceIndex == other.interfaceIndex && source == other.source && gateway == other.gateway
            && establishedRoute == other.establishedRoute
    }
}

extension NetworkPath {
    /// The destination and the socket binding of a connection as programs make it.
    package var candidate: ConnectionCandidate {
        let needsZone = destination.isLinkLocal && destination.zone == 0
        return ConnectionCandidate(
            needsZone ? destination.inZone(interfaceIndex) : destination,
            binding: requiredBinding
        )
    }

    /// The binding of a socket that may use no other path.
    ///
    /// The kernel looks up the route of a bound socket with the interface and the source address. Rules and routes that
    /// depend on them may then select another gateway than for other sockets, or refuse the connection.
    package var binding: SocketBinding { binding(to: [.interface, .source]) }

    /// The binding of a socket for whose connections ``PathOptions`` were set. Without options, nothing is bound.
    package var requiredBinding: SocketBinding { binding(to: required) }

    private func binding(to properties: Required) -> SocketBinding {
        // The interface of a local path is loopback. A socket that is bound to loopback cannot reach the addresses of
        // other interfaces.
        SocketBinding(
            interfaceIndex: properties.contains(.interface) && !isLocal ? interfaceIndex : 0,
            source: properties.contains(.source) ? source : nil,
            family: destination.family
        )
    }
}

extension NetworkPath: CustomStringConvertible {
    /// A human-readable description, such as `over eth0 from 192.0.2.7 via 192.0.2.1`.
    public var description: String {
        if isLocal { return "on this machine" }
        let parts = [
            interfaceName.isEmpty ? nil : "over \(interfaceName)",
            source.map { "from \($0)" },
            gateway.map { "via \($0)" },
        ]
        return parts.compactMap(\.self).joined(separator: " ")
    }
}

/// The interfaces of the machine and its general reachability (``PathTarget/general``) at one moment.
public struct NetworkSnapshot: Hashable, Sendable {
    /// A number that increases with each snapshot of the same monitor.
    public let generation: UInt64
    /// All interfaces, sorted by index. Empty if netlink is unavailable.
    public let interfaces: [NetworkInterface]
    /// The status of ``PathTarget/general``, as delivered to its watches.
    ///
    /// A loss is held back for ``PathMonitor/Configuration/settle``. Until then this is the status before the loss. A
    /// further snapshot follows with the new status.
    public let general: PathStatus

    /// Whether this machine has a working route out by IPv4.
    public var supportsIPv4: Bool { general.supportsIPv4 }
    /// Whether this machine has a working route out by IPv6.
    public var supportsIPv6: Bool { general.supportsIPv6 }

    /// Returns whether two snapshots are equal except for their generation.
    func isSame(as other: NetworkSnapshot) -> Bool {
        interfaces == other.interfaces && general == other.general
    }
}
