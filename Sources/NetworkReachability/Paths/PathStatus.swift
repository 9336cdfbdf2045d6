/// What is known about the way to a ``PathTarget``.
///
/// It says whether a packet could leave this machine towards the target, never whether the target would
/// answer. It is a hint for when to try, not a permission to send.
public struct PathStatus: Hashable, Sendable {
    /// The answer and what it rests on.
    public enum Verdict: Hashable, Sendable {
        /// It could not be told.
        case unknown(Reason)
        /// The kernel would refuse to send, or would send into nowhere.
        case notReachable(Reason)
        /// The kernel would send, this way.
        // Indirect, so that all who keep a verdict share one path.
        indirect case reachable(NetworkPath)
    }

    /// Why a target is not reachable or could not be judged. New reasons may be added.
    public struct Reason: RawRepresentable, Hashable, Sendable {
        /// The reason as it stands in machine-readable output.
        public let rawValue: String

        /// Makes a reason of its machine-readable form.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }
    }

    /// What was asked about.
    public let target: PathTarget
    /// The answer.
    public let verdict: Verdict
    /// Rises when the interface, the source address or the gateway of the path changed, even if the verdict
    /// did not, and when a path was lost and found again too quickly to be reported: connections made
    /// before may be dead. 0 until there is a path, 1 with the first; each target has its own.
    public let pathGeneration: UInt64
    /// Rises when the interface, the source address or the gateway became another one, and after time that was not
    /// observed (a suspension). Unlike ``pathGeneration`` it stays the same when the same path was lost and found
    /// again: connections that were made before may then still be alive.
    package let wayGeneration: UInt64
    /// Whether an IPv4 address of the target is reachable; for ``PathTarget/general``, whether there is a way out
    /// by IPv4.
    public let supportsIPv4: Bool
    /// Whether an IPv6 address of the target is reachable; for ``PathTarget/general``, whether there is a way out
    /// by IPv6.
    public let supportsIPv6: Bool

    init(target: PathTarget, finding: Finding, pathGeneration: UInt64, wayGeneration: UInt64 = 0) {
        self.target = target
        self.pathGeneration = pathGeneration
        self.wayGeneration = wayGeneration
        verdict = finding.verdict
        supportsIPv4 = finding.supportsIPv4
        supportsIPv6 = finding.supportsIPv6
    }

    /// Whether the answer is yes.
    public var isReachable: Bool {
        path != nil
    }

    /// The path, if the target is reachable.
    public var path: NetworkPath? { verdict.path }

    /// Why not, if the target is not known to be reachable.
    public var reason: Reason? {
        switch verdict {
        case .unknown(let reason), .notReachable(let reason): reason
        case .reachable: nil
        }
    }
}

extension PathStatus.Reason {
    /// No route covers the address, or an `unreachable` rule does, or the kernel has no IPv6 (`ENETUNREACH`).
    public static let noRoute = Self(rawValue: "noRoute")
    /// An `unreachable` route covers it (`EHOSTUNREACH`).
    public static let unreachable = Self(rawValue: "unreachable")
    /// A `prohibit` route or rule covers it (`EACCES`).
    public static let prohibited = Self(rawValue: "prohibited")
    /// A `blackhole` route covers it (`EINVAL` without further words).
    public static let blackhole = Self(rawValue: "blackhole")
    /// There is a route, but its interface has no carrier: the cable is out.
    public static let noCarrier = Self(rawValue: "noCarrier")
    /// The loopback interface is down, and nothing reaches this machine itself without it.
    public static let loopbackDown = Self(rawValue: "loopbackDown")
    /// There is no interface of the name in ``PathOptions/interface``.
    public static let noInterface = Self(rawValue: "noInterface")
    /// There is a route, but no source address the far side could answer to; or no interface has the one in
    /// ``PathOptions/source``.
    public static let noSource = Self(rawValue: "noSource")
    /// The address is a broadcast or multicast address here.
    public static let notUnicast = Self(rawValue: "notUnicast")
    /// The name has never been resolved, although there is a way out.
    public static let unresolved = Self(rawValue: "unresolved")
    /// The first lookup of the name has not ended yet. Only getters tell it.
    public static let resolving = Self(rawValue: "resolving")
    /// The kernel could not be asked; ``PathMonitor/failure`` tells why.
    public static let noNetlink = Self(rawValue: "noNetlink")
    /// The kernel answered with an error that says nothing about the route.
    public static let lookupFailed = Self(rawValue: "lookupFailed")
}

extension PathStatus.Reason: CustomStringConvertible {
    /// The reason in words for a person.
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
    /// The status in words for a person: `example.com: reachable over eth0 from 192.0.2.7 via 192.0.2.1`.
    public var description: String {
        "\(target): \(verdict)"
    }
}

extension PathStatus.Verdict: CustomStringConvertible {
    /// The verdict in words for a person.
    public var description: String {
        switch self {
        case .unknown(let reason): "unknown: \(reason)"
        case .notReachable(let reason): "not reachable: \(reason)"
        case .reachable(let path): "reachable \(path)"
        }
    }
}
