public import NetwatchEventLoop

/// The target of a watch: one host, or the network in general.
public enum PathTarget: Hashable, Sendable {
    /// One host.
    // Indirect, so that the many statuses of a host share one copy of it.
    indirect case host(NetworkHost)

    /// The network in general: reachable while this machine has a working route out, by IPv4 or IPv6.
    ///
    /// A route out is any working route that covers one of ``PathMonitor/Configuration/generalAddresses``. Usually it
    /// is the default route, but a policy rule or a full routing table may select another one. No packet is sent to
    /// these addresses.
    ///
    /// A search for a default route would miss such routes: a machine with policy rules or a full table may have no
    /// default route in its main table. A lookup of 0.0.0.0 would not help, because the kernel answers it with the
    /// loopback interface.
    case general
}

extension PathTarget: CustomStringConvertible {
    /// The text of the host, or `general` for ``general``.
    public var description: String {
        switch self {
        case .host(let host): host.text
        case .general: "general"
        }
    }
}

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

/// A compact form of ``PathOptions``, stored with each watched address. The defaults, the common case, need no
/// allocation.
struct SparseOptions: Hashable, Sendable {
    private final class Box: Sendable {
        let options: PathOptions

        init(_ options: PathOptions) { self.options = options }
    }

    private let box: Box?

    init(_ options: PathOptions) {
        box = options == PathOptions() ? nil : Box(options)
    }

    var options: PathOptions { box?.options ?? PathOptions() }

    var areDefaults: Bool { box == nil }

    /// Whether the options name something that any interface may have: a name or a source address.
    var dependOnInterfaces: Bool {
        guard let options = box?.options else { return false }
        return options.interface != nil || options.source != nil
    }

    static func == (left: SparseOptions, right: SparseOptions) -> Bool {
        left.box?.options == right.box?.options
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(box?.options)
    }
}
