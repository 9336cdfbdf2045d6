/// The reachability of a ``PathTarget``.
///
/// The status says whether `connect(2)` of a TCP socket would find a path on which a packet could leave this machine,
/// and whether a reply could come back. It does not say whether the target would respond. Use the status to decide when
/// to try, never to decide whether to send at all.
public struct PathStatus: Hashable, Sendable {
    /// The result with its path or its reason.
    public enum Verdict: Hashable, Sendable {
        /// The reachability could not be determined.
        case unknown(Reason)
        /// The kernel would refuse to send a packet, or would drop it.
        case notReachable(Reason)
        /// The kernel would send a packet on this path.
        // Indirect, so that all copies of a verdict share one path.
        indirect case reachable(NetworkPath)
    }

    /// The reason why a target is not reachable, or why its reachability is unknown. Later versions may add reasons.
    public struct Reason: RawRepresentable, Hashable, Sendable {
        /// The name of the reason in machine-readable output, such as `noCarrier`.
        public let rawValue: String

        /// Creates a reason from its name in machine-readable output.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }
    }

    /// The target whose reachability this status describes.
    public let target: PathTarget
    /// Whether the target is reachable, with the path or the reason.
    public let verdict: Verdict
    /// A counter that increases when existing connections to the target may be dead.
    ///
    /// It is 0 until the target has a path, and 1 for the first path. After that it increases:
    /// - when the interface, the source address or the gateway of the path changes;
    /// - when the kernel routes the packets of established connections on another path, or drops them, because of a
    ///   policy rule for their source address, even if new connections use the same path as before;
    /// - when the path was lost and found again, even if this was too short to be reported;
    /// - after a suspension of the machine.
    ///
    /// Each target has its own counter.
    public let pathGeneration: UInt64
    /// A counter that increases when the interface, the source address or the gateway changes, or the route of
    /// established connections. It also increases after a suspension of the machine, because changes may have gone
    /// unnoticed in that time.
    ///
    /// Unlike ``pathGeneration``, it does not increase when the same path was lost and found again. Connections that
    /// were made before may then still be alive.
    package let routeGeneration: UInt64
    /// Whether at least one IPv4 address of the target is reachable. For ``PathTarget/general``: whether this machine
    /// has a working route out by IPv4.
    public let supportsIPv4: Bool
    /// Whether at least one IPv6 address of the target is reachable. For ``PathTarget/general``: whether this machine
    /// has a working route out by IPv6.
    public let supportsIPv6: Bool

    init(
        target: PathTarget,
        verdict targetVerdict: TargetVerdict,
        pathGeneration: UInt64,
        routeGeneration: UInt64 = 0
    ) {
        self.target = target
        self.pathGeneration = pathGeneration
        self.routeGeneration = routeGeneration
        verdict = targetVerdict.verdict
        supportsIPv4 = targetVerdict.supportsIPv4
        supportsIPv6 = targetVerdict.supportsIPv6
    }

    /// Whether the target is known to be reachable. `false` if it is not reachable, or if the verdict is
    /// ``Verdict/unknown(_:)``.
    public var isReachable: Bool {
        path != nil
    }

    /// The path to the target; `nil` unless the target is reachable.
    public var path: NetworkPath? { verdict.path }

    /// The reason why the target is not reachable, or why its reachability is unknown; `nil` if it is reachable.
    public var reason: Reason? {
        switch verdict {
        case .unknown(let reason), .notReachable(let reason): reason
        case .reachable: nil
        }
    }
}

extension PathStatus.Verdict {
    var isReachable: Bool {
        path != nil
    }

    var path: NetworkPath? {
        if case .reachable(let path) = self { path } else { nil }
    }
}

extension PathStatus.Reason {
    /// No route covers the address, an `unreachable` rule matches, or the kernel has no IPv6 (`ENETUNREACH`).
    public static let noRoute = Self(rawValue: "noRoute")
    /// An `unreachable` route covers the address (`EHOSTUNREACH`).
    public static let unreachable = Self(rawValue: "unreachable")
    /// A `prohibit` route or rule covers the address (`EACCES`).
    public static let prohibited = Self(rawValue: "prohibited")
    /// A `blackhole` route covers the address (`EINVAL` without an error message of the kernel).
    public static let blackhole = Self(rawValue: "blackhole")
    /// There is a route, but its interface has no carrier, for example because its cable is unplugged.
    public static let noCarrier = Self(rawValue: "noCarrier")
    /// The loopback interface is down. The machine cannot reach itself without it.
    public static let loopbackDown = Self(rawValue: "loopbackDown")
    /// No interface has the name in ``PathOptions/interface``.
    public static let noInterface = Self(rawValue: "noInterface")
    /// There is a route, but this machine has no source address to which the destination could reply. Or no interface
    /// has the address in ``PathOptions/source``.
    public static let noSource = Self(rawValue: "noSource")
    /// The address is a broadcast, multicast or anycast address on this machine's networks.
    public static let notUnicast = Self(rawValue: "notUnicast")
    /// The name has no known addresses, although this machine can reach others. Either no lookup has succeeded yet, or
    /// name servers answered twice in a row that the name has no addresses.
    public static let unresolved = Self(rawValue: "unresolved")
    /// The first lookup of the name has not finished yet. Only getters return this reason; watches are not notified
    /// of it.
    public static let resolving = Self(rawValue: "resolving")
    /// Netlink is unavailable; see ``PathMonitor/failure`` for the error.
    public static let noNetlink = Self(rawValue: "noNetlink")
    /// The kernel returned an error that does not show whether there is a route.
    public static let lookupFailed = Self(rawValue: "lookupFailed")
}

extension PathStatus.Reason: CustomStringConvertible {
    /// A human-readable description of the reason.
    public var description: String {
        switch self {
        case .noRoute: "no route"
        case .unreachable: "unreachable route"
        case .prohibited: "prohibited by a route or rule"
        case .blackhole: "blackhole route"
        case .noCarrier: "no carrier"
        case .loopbackDown: "the loopback interface is down"
        case .noInterface: "no interface has the required name"
        case .noSource: "no usable source address"
        case .notUnicast: "not a unicast address"
        case .unresolved: "name not resolved"
        case .resolving: "resolving"
        case .noNetlink: "netlink unavailable"
        case .lookupFailed: "route lookup failed"
        default: rawValue
        }
    }
}

extension PathStatus: CustomStringConvertible {
    /// A human-readable description, such as `example.com: reachable over eth0 from 192.0.2.7 via 192.0.2.1`.
    public var description: String {
        "\(target): \(verdict)"
    }
}

extension PathStatus.Verdict: CustomStringConvertible {
    /// A human-readable description of the verdict.
    public var description: String {
        switch self {
        case .unknown(let reason): "unknown: \(reason)"
        case .notReachable(let reason): "not reachable: \(reason)"
        case .reachable(let path): "reachable \(path)"
        }
    }
}

/// The verdict on a target, combined from the verdicts on its addresses.
struct TargetVerdict: Hashable, Sendable {
    let verdict: PathStatus.Verdict
    var supportsIPv4 = false
    var supportsIPv6 = false

    init(_ verdict: PathStatus.Verdict) {
        self.verdict = verdict
        note(verdict)
    }

    /// Combines the verdicts on addresses; `nil` if there are none.
    ///
    /// The result is the first reachable verdict. If there is none, it is the first unknown one, and if all are not
    /// reachable, the first of all.
    ///
    /// - Parameter verdicts: In the order in which the resolver returned the addresses (RFC 6724).
    init?(_ verdicts: some Collection<PathStatus.Verdict>) {
        let decisive =
            verdicts.first(where: \.isReachable) ?? verdicts.first(where: \.isUnknown) ?? verdicts.first
        guard let decisive else { return nil }
        verdict = decisive
        for verdict in verdicts { note(verdict) }
    }

    private mutating func note(_ verdict: PathStatus.Verdict) {
        guard case .reachable(let path) = verdict else { return }
        switch path.destination.family {
        case .ipv4: supportsIPv4 = true
        case .ipv6: supportsIPv6 = true
        }
    }
}

extension PathStatus.Verdict {
    fileprivate var isUnknown: Bool {
        if case .unknown = self { true } else { false }
    }
}
