public import NetwatchEventLoop

/// Socket options that affect how the kernel routes the packets.
///
/// Policy rules may route such packets differently, so set the same options that the connections will use.
public struct PathOptions: Hashable, Sendable {
    /// The firewall mark (`SO_MARK`). Default `nil`: none. A lookup with a mark needs no privilege, but setting the
    /// mark on a socket does.
    public var mark: UInt32?

    /// The user ID of the sender, for rules with `uidrange`. Default `nil`: the user of this process.
    public var userID: UInt32?

    /// The name of the interface that packets must leave through (`SO_BINDTODEVICE`). Default `nil`: any.
    ///
    /// Nothing is reachable while no interface has this name. The zone of an address takes precedence.
    public var interface: String?

    /// The source address (`bind(2)`). Default `nil`: the kernel chooses it.
    ///
    /// Nothing is reachable while no interface has this address. Addresses of the other family are never reachable.
    public var source: IPAddress?

    /// Creates options with the default values.
    public init() {}
}
