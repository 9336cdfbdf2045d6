/// One way to find out whether a path really carries traffic.
///
/// A ``PathMonitor`` knows whether packets could leave; a probe sends some and waits for the answer. It never
/// decides about reachability: networks that drop what a probe sends are networks all the same.
///
/// A probe of your own limits itself in time and in what it reads, and leaves by the path it is given.
public protocol Probe: Sendable {
    /// What is done, for people and for machine-readable output: `tcp 443`, `https`.
    var name: String { get }

    /// Tries the path once.
    ///
    /// Called on the cooperative pool, which it must not block; by one ``PathValidator`` never twice at the
    /// same time. Cancelling the task ends the attempt at once; what is then returned is dropped, but the next
    /// attempt waits for it.
    ///
    /// - Parameters:
    ///   - host: The watched host; `nil` when it is the way out in general.
    ///   - path: The path to try.
    func run(to host: NetworkHost?, over path: NetworkPath) async -> ProbeResult
}

/// A probe that, like a client, tries the other addresses of a host when the first does not answer (RFC 8305).
package protocol RacingProbe: Probe {
    /// Tries the paths, one 250 ms after the other and at once after a failure, until one carries traffic.
    ///
    /// - Parameters:
    ///   - host: The watched host.
    ///   - paths: One for each address of the host that there is a path to, in the order of preference; at least one.
    func run(to host: NetworkHost?, over paths: [NetworkPath]) async -> ProbeResult
}

/// What a path turned out to carry.
public enum PathValidation: Hashable, Sendable {
    /// It has not been tried.
    case none
    /// Traffic comes through.
    case valid
    /// A portal stands in the way, and lets traffic through once somebody has dealt with it.
    case captive(CaptivePortal)
    /// It was tried in vain; why, in words for a person.
    case failed(String)
}

/// What one attempt found out.
public struct ProbeResult: Hashable, Sendable {
    /// What the path carries.
    public let validation: PathValidation
    /// How long the answer took; `nil` when none came.
    public let latency: Duration?
    /// What the network's portal said about itself, which it does also when it lets traffic through; `nil`
    /// when no portal was heard of.
    public let portal: CaptivePortal?

    /// Makes a result.
    ///
    /// - Parameters:
    ///   - validation: What the path carries.
    ///   - latency: How long the answer took. Default `nil`.
    ///   - portal: What a portal that lets traffic through said. Default `nil`; of one that does not, what
    ///     stands in the validation.
    public init(_ validation: PathValidation, latency: Duration? = nil, portal: CaptivePortal? = nil) {
        self.validation = validation
        self.latency = latency
        if case .captive(let captor) = validation { self.portal = captor } else { self.portal = portal }
    }
}

/// What is known of a captive portal: the keys of RFC 8908 §5. A portal that was only run into has at most
/// the URL that it redirected to.
public struct CaptivePortal: Hashable, Sendable {
    /// The page where a user is let through, or told how.
    public var userPortalURL: String?
    /// A page about the place the network is at.
    public var venueInfoURL: String?
    /// Whether the session can be extended at ``userPortalURL`` before it ends.
    public var canExtendSession: Bool?
    /// In how many seconds traffic is held back again.
    public var secondsRemaining: UInt64?
    /// After how many bytes, sent and received together, traffic is held back again.
    public var bytesRemaining: UInt64?

    /// Makes a portal of which nothing is known.
    public init() {}

    /// Makes a portal of which only the page is known.
    public init(userPortalURL: String?) {
        self.userPortalURL = userPortalURL
    }
}

extension PathValidation: CustomStringConvertible {
    /// The answer in words: `valid`, `captive (https://portal.example/)`, `failed (connection refused)`.
    public var description: String {
        switch self {
        case .none: "not tried"
        case .valid: "valid"
        case .captive(let portal): portal.userPortalURL.map { "captive (\($0))" } ?? "captive"
        case .failed(let reason): "failed (\(reason))"
        }
    }
}
