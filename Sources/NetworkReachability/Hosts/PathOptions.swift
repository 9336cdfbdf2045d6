public import NetwatchEventLoop

/// The properties of the connections whose path is watched, as far as they affect routing.
///
/// Policy rules may route packets by these properties. Set the same values here that the connections will have.
///
/// ```swift
/// var options = PathOptions()
/// options.interface = "wwan0"
/// for await status in monitor.statuses(of: .host(host), options: options) { print(status) }
/// ```
public struct PathOptions: Hashable, Sendable {
    /// The firewall mark (`SO_MARK`). Default: `nil`, no mark.
    ///
    /// Watching a path with a mark needs no privilege. Setting the mark on a socket does.
    public var mark: UInt32?

    /// The user ID of the sender, for rules with `uidrange`. Default: `nil`, the user of this process.
    public var userID: UInt32?

    /// The name of the interface that packets must leave through (`SO_BINDTODEVICE`). Default: `nil`, any interface.
    ///
    /// Nothing is reachable while no interface has this name. If an address has a zone, its zone selects the
    /// interface instead.
    public var interface: String?

    /// The source address (`bind(2)`). Default: `nil`, the kernel chooses it.
    ///
    /// Nothing is reachable while no interface has this address. With an IPv4 source no IPv6 address is reachable, and
    /// vice versa.
    public var source: IPAddress?

    /// The TCP port to connect to, for rules with `dport`. Default: `nil`, unknown: such rules do not match.
    public var port: UInt16?

    /// Creates options with the default values.
    public init() {}
}
