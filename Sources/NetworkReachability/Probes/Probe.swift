/// A method to find out whether a path really carries traffic.
///
/// A ``PathMonitor`` knows whether packets could leave; a probe sends packets and waits for the answer. A probe never
/// decides about reachability, because a network that drops its packets may still carry others.
///
/// A custom probe must limit its own duration and the amount that it reads, and must use the given path.
public protocol Probe: Sendable {
    /// The name for messages and machine-readable output: `tcp 443`, `https`.
    var name: String { get }

    /// Probes the path once.
    ///
    /// Called on the cooperative pool, which it must not block. One ``PathValidator`` never makes two calls at the
    /// same time. When the task is cancelled, the probe must stop immediately. Its result is then dropped, but the
    /// next probe waits for it to return.
    ///
    /// - Parameters:
    ///   - host: The watched host; `nil` for ``PathTarget/general``.
    ///   - path: The path to probe.
    func run(to host: NetworkHost?, over path: NetworkPath) async -> ProbeResult
}

/// A probe that tries the other addresses of a host if the first does not answer, as clients do (RFC 8305).
package protocol RacingProbe: Probe {
    /// Tries the paths in order until one carries traffic. The next attempt starts 250 ms after the previous one, or
    /// immediately after a failure.
    ///
    /// - Parameters:
    ///   - host: The watched host.
    ///   - paths: The paths to the host's reachable addresses, one per address, in order of preference; at least one.
    func run(to host: NetworkHost?, over paths: [NetworkPath]) async -> ProbeResult
}

/// The result of validating a path.
public enum PathValidation: Hashable, Sendable {
    /// The path has not been probed.
    case none
    /// The path carries traffic.
    case valid
    /// A captive portal blocks traffic until the user logs in or accepts its terms.
    case captive(CaptivePortal)
    /// The probe failed, with a human-readable reason.
    case failed(String)
}

/// The result of one probe.
public struct ProbeResult: Hashable, Sendable {
    /// Whether the path carries traffic.
    public let validation: PathValidation
    /// The time until the answer; `nil` if there was none.
    public let latency: Duration?
    /// The information from the network's captive portal, also when it lets traffic through; `nil` if no portal is
    /// known.
    public let portal: CaptivePortal?

    /// Creates a result.
    ///
    /// - Parameters:
    ///   - validation: Whether the path carries traffic.
    ///   - latency: The time until the answer. Default `nil`.
    ///   - portal: The information from a portal that lets traffic through. Default `nil`. For a `captive`
    ///     validation, the portal in the validation is used instead.
    public init(_ validation: PathValidation, latency: Duration? = nil, portal: CaptivePortal? = nil) {
        self.validation = validation
        self.latency = latency
        if case .captive(let captivePortal) = validation {
            self.portal = captivePortal
        } else {
            self.portal = portal
        }
    }
}

/// The properties of a captive portal: the keys of RFC 8908 §5. If the portal was only detected by a redirect, at
/// most the URL is known.
public struct CaptivePortal: Hashable, Sendable {
    /// The page on which the user can log in or get instructions.
    public var userPortalURL: String?
    /// A page about the venue of the network.
    public var venueInfoURL: String?
    /// Whether the session can be extended at ``userPortalURL`` before it ends.
    public var canExtendSession: Bool?
    /// The number of seconds until traffic is blocked again.
    public var secondsRemaining: UInt64?
    /// The number of bytes, sent and received together, until traffic is blocked again.
    public var bytesRemaining: UInt64?

    /// Creates a portal without any properties.
    public init() {}

    /// Creates a portal of which only the page is known.
    public init(userPortalURL: String?) {
        self.userPortalURL = userPortalURL
    }
}

extension PathValidation: CustomStringConvertible {
    /// A human-readable description: `valid`, `captive (https://portal.example/)`, `failed (connection refused)`.
    public var description: String {
        switch self {
        case .none: "not tried"
        case .valid: "valid"
        case .captive(let portal): portal.userPortalURL.map { "captive (\($0))" } ?? "captive"
        case .failed(let reason): "failed (\(reason))"
        }
    }
}
