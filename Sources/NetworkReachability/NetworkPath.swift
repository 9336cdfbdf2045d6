public import NetwatchEventLoop

/// The way the kernel would send a packet.
public struct NetworkPath: Hashable, Sendable {
    /// The address the packet would go to.
    public let destination: IPAddress
    /// The interface it would leave by: its index, which is its identity.
    public let interfaceIndex: UInt32
    /// The interface's name when the path was looked up.
    public let interfaceName: String
    /// The next router, or `nil` when the destination is on the interface's own network.
    public let gateway: IPAddress?
    /// The source address the packet would carry.
    public let source: IPAddress?
    /// Whether the destination is this machine itself. Such a path says nothing about the network.
    public let isLocal: Bool

    /// Whether another path leads the same way for a connection: same interface, source and gateway.
    func isSameWay(as other: NetworkPath) -> Bool {
        interfaceIndex == other.interfaceIndex && source == other.source && gateway == other.gateway
    }
}
