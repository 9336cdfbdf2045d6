/// Interfaces and the way out at one moment.
public struct NetworkSnapshot: Hashable, Sendable {
    /// Rises with each snapshot of a monitor.
    public let generation: UInt64
    /// Every interface, in the order of their indexes. Empty where netlink is missing.
    public let interfaces: [NetworkInterface]
    /// The way out in general, as a watch of ``PathTarget/general`` was told last: the loss of it is held back for
    /// ``PathMonitor/Configuration/settle``, and comes with a snapshot of its own.
    public let general: PathStatus

    /// Whether there is a way out by IPv4.
    public var supportsIPv4: Bool { general.supportsIPv4 }
    /// Whether there is a way out by IPv6.
    public var supportsIPv6: Bool { general.supportsIPv6 }

    /// Whether another snapshot shows the same.
    func isSame(as other: NetworkSnapshot) -> Bool {
        interfaces == other.interfaces && general == other.general
    }
}
