public import NetwatchEventLoop

/// The path on which the kernel would send a packet.
///
/// A route may have several next hops, and the kernel chooses one per flow. This is the path that the kernel chooses
/// if only the destination is known. A connection to the same address may use another one.
public struct NetworkPath: Hashable, Sendable {
    /// The destination address of the packet.
    public let destination: IPAddress
    /// The index of the outgoing interface, which identifies it. 0 if netlink is unavailable.
    public let interfaceIndex: UInt32
    /// The name of the interface at the time of the lookup. Empty if netlink is unavailable.
    public let interfaceName: String
    /// The type of the interface. ``InterfaceType/other`` if netlink is unavailable.
    public let interfaceType: InterfaceType
    /// The type of the lowest interface that carries the packets: the Wi-Fi under a bridge, the Ethernet under a
    /// tunnel.
    public let medium: InterfaceType
    /// Whether the path leads through a tunnel.
    public let isTunnel: Bool
    /// The next router, or `nil` if the destination is on the interface's own network.
    public let gateway: IPAddress?
    /// The source address of the packet.
    public let source: IPAddress?
    /// Whether the destination is this machine itself. Such a path says nothing about the network.
    public let isLocal: Bool
    /// The prefix length of the matching route: 0 for a default route, all bits for a host route.
    public var prefixLength: Int { Int(shortPrefixLength) }
    private let shortPrefixLength: UInt8
    /// The routing table of the matching route. 254 is the main table, 255 the local table; rules select others.
    public let table: UInt32

    init(
        destination: IPAddress,
        interface: NetworkInterface?,
        gateway: IPAddress?,
        source: IPAddress?,
        isLocal: Bool,
        prefixLength: Int,
        table: UInt32
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
    }

    /// Whether a connection would use the same interface, source and gateway on both paths.
    func usesSameRoute(as other: NetworkPath) -> Bool {
        interfaceIndex == other.interfaceIndex && source == other.source && gateway == other.gateway
    }
}

extension NetworkPath {
    /// The destination and the socket binding for this path.
    package var candidate: ConnectionCandidate {
        let needsZone = destination.isLinkLocal && destination.zone == 0
        return ConnectionCandidate(
            needsZone ? destination.inZone(interfaceIndex) : destination,
            binding: binding
        )
    }

    /// The socket binding for this path.
    package var binding: SocketBinding {
        // Local packets use loopback. A socket bound to loopback cannot reach the addresses of other interfaces.
        SocketBinding(
            interfaceIndex: isLocal ? 0 : interfaceIndex,
            source: source,
            family: destination.family
        )
    }
}

extension NetworkPath: CustomStringConvertible {
    /// A human-readable description: `over eth0 from 192.0.2.7 via 192.0.2.1`.
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
