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
