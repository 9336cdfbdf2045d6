/// The interfaces and the general reachability at one moment.
public struct NetworkSnapshot: Hashable, Sendable {
    /// Increases with each snapshot of a monitor.
    public let generation: UInt64
    /// All interfaces, sorted by index. Empty if netlink is unavailable.
    public let interfaces: [NetworkInterface]
    /// The last status delivered to watches of ``PathTarget/general``. A loss is held back for
    /// ``PathMonitor/Configuration/settle`` and then published in a further snapshot.
    public let general: PathStatus

    /// Whether there is a route out by IPv4.
    public var supportsIPv4: Bool { general.supportsIPv4 }
    /// Whether there is a route out by IPv6.
    public var supportsIPv6: Bool { general.supportsIPv6 }

    /// Whether two snapshots are equal except for their generation.
    func isSame(as other: NetworkSnapshot) -> Bool {
        interfaces == other.interfaces && general == other.general
    }
}
