/// The reachability of a ``PathTarget``.
///
/// It says whether a packet could leave this machine towards the target, never whether the target would answer. Use
/// it as a hint for when to try, not as a condition for sending.
public struct PathStatus: Hashable, Sendable {
    /// The result and the path or reason behind it.
    public enum Verdict: Hashable, Sendable {
        /// The reachability could not be determined.
        case unknown(Reason)
        /// The kernel would refuse to send, or would drop the packet.
        case notReachable(Reason)
        /// The kernel would send on this path.
        // Indirect, so that all copies of a verdict share one path.
        indirect case reachable(NetworkPath)
    }

    /// Why a target is not reachable or why its reachability is unknown. New reasons may be added.
    public struct Reason: RawRepresentable, Hashable, Sendable {
        /// The reason in machine-readable output.
        public let rawValue: String

        /// Creates a reason from its machine-readable form.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }
    }

    /// The target of the status.
    public let target: PathTarget
    /// The verdict on the target.
    public let verdict: Verdict
    /// A counter that increases when existing connections may be dead.
    ///
    /// It increases when the interface, the source address or the gateway of the path changes, even if the verdict
    /// stays the same. It also increases when a path was lost and found again too quickly to be reported. It is 0
    /// until there is a path and 1 for the first path. Each target has its own counter.
    public let pathGeneration: UInt64
    /// A counter that increases when the interface, the source address or the gateway changes, and after time that
    /// was not observed (a suspension). Unlike ``pathGeneration``, it stays the same when the same path was lost and
    /// found again, because connections made before may then still be alive.
    package let routeGeneration: UInt64
    /// Whether an IPv4 address of the target is reachable. For ``PathTarget/general``: whether there is a route out
    /// by IPv4.
    public let supportsIPv4: Bool
    /// Whether an IPv6 address of the target is reachable. For ``PathTarget/general``: whether there is a route out
    /// by IPv6.
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

    /// Whether the target is reachable.
    public var isReachable: Bool {
        path != nil
    }

    /// The path, if the target is reachable.
    public var path: NetworkPath? { verdict.path }

    /// The reason, if the target is not known to be reachable.
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
    /// A `blackhole` route covers the address (`EINVAL` without a message).
    public static let blackhole = Self(rawValue: "blackhole")
    /// There is a route, but its interface has no carrier, for example because the cable is unplugged.
    public static let noCarrier = Self(rawValue: "noCarrier")
    /// The loopback interface is down. The machine cannot reach itself without it.
    public static let loopbackDown = Self(rawValue: "loopbackDown")
    /// No interface has the name in ``PathOptions/interface``.
    public static let noInterface = Self(rawValue: "noInterface")
    /// There is a route but no source address that the destination could reply to, or no interface has the address in
    /// ``PathOptions/source``.
    public static let noSource = Self(rawValue: "noSource")
    /// The address is a broadcast or multicast address on this machine.
    public static let notUnicast = Self(rawValue: "notUnicast")
    /// The name has never been resolved, although there is a route out.
    public static let unresolved = Self(rawValue: "unresolved")
    /// The first lookup of the name has not finished yet. Only getters return this reason; it is never delivered.
    public static let resolving = Self(rawValue: "resolving")
    /// Netlink is unavailable; see ``PathMonitor/failure`` for the error.
    public static let noNetlink = Self(rawValue: "noNetlink")
    /// The kernel returned an error that says nothing about the route.
    public static let lookupFailed = Self(rawValue: "lookupFailed")
}

extension PathStatus.Reason: CustomStringConvertible {
    /// A human-readable description of the reason.
    public var description: String {
        switch self {
        case .noRoute: "no route"
        case .unreachable: "route says unreachable"
        case .prohibited: "prohibited by a route or rule"
        case .blackhole: "blackhole route"
        case .noCarrier: "no carrier"
        case .loopbackDown: "the loopback interface is down"
        case .noInterface: "no such interface"
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
    /// A human-readable description: `example.com: reachable over eth0 from 192.0.2.7 via 192.0.2.1`.
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
