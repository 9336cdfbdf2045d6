public import NetwatchEventLoop

/// The way the kernel would send a packet.
///
/// A route may have several next hops, between which the kernel chooses for each flow. The path is then the one that it
/// chooses when only the destination is known; a connection to the same address may use another.
public struct NetworkPath: Hashable, Sendable {
    /// The address the packet would go to.
    public let destination: IPAddress
    /// The interface it would leave by: its index, which is its identity. 0 where netlink is missing.
    public let interfaceIndex: UInt32
    /// The interface's name when the path was looked up; empty where netlink is missing.
    public let interfaceName: String
    /// What the interface is; ``InterfaceType/other`` where netlink is missing.
    public let interfaceType: InterfaceType
    /// What carries the interface's packets in the end: the Wi-Fi under a bridge, the Ethernet under a tunnel.
    public let medium: InterfaceType
    /// Whether the way leads through a tunnel.
    public let isTunnel: Bool
    /// The next router, or `nil` when the destination is on the interface's own network.
    public let gateway: IPAddress?
    /// The source address the packet would carry.
    public let source: IPAddress?
    /// Whether the destination is this machine itself. Such a path says nothing about the network.
    public let isLocal: Bool
    /// How many bits of the destination the deciding route fixes: 0 for a default route, all of them for a
    /// host's own.
    public var prefixLength: Int { Int(shortPrefixLength) }
    private let shortPrefixLength: UInt8
    /// The routing table that decided: 254 is the main one, 255 the local one, others are chosen by rules.
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

    /// Whether another path leads the same way for a connection: same interface, source and gateway.
    func isSameWay(as other: NetworkPath) -> Bool {
        interfaceIndex == other.interfaceIndex && source == other.source && gateway == other.gateway
    }
}

extension NetworkPath: CustomStringConvertible {
    /// The path in words for a person: `over eth0 from 192.0.2.7 via 192.0.2.1`.
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
