/// A test that finds out whether a path really carries traffic: it sends packets and waits for an answer.
///
/// A ``PathMonitor`` only knows whether packets could leave this machine. Still, a failed probe does not make a target
/// unreachable, because a network that drops the probe's packets may carry other packets.
///
/// A custom probe should connect as the programs do for which the path is watched. It must limit its duration and the amount of data that it reads.
///
/// ```swift
/// struct WebProbe: Probe {
///     let name = "tcp 443 or 80"
///
///     func run(to host: NetworkHost?, over path: NetworkPath) async -> ProbeResult {
///         let result = await TCPProbe(port: 443).run(to: host, over: path)
///         return result.validation == .valid ? result : await TCPProbe(port: 80).run(to: host, over: path)
///     }
/// }
/// ```
public protocol Probe: Sendable {
    /// The name of the probe in messages and machine-readable output, such as `tcp 443` or `https`.
    var name: String { get }

    /// Probes the path once.
    ///
    /// A ``PathValidator`` calls this method on the cooperative pool, which the method must not block. Its calls do not
    /// overlap. When the task is cancelled, the method must return immediately, because the next probe waits for its
    /// end. The validator then drops the result.
    ///
    /// - Parameters:
    ///   - host: The watched host; `nil` for ``PathTarget/general``.
    ///   - path: The path to probe.
    func run(to host: NetworkHost?, over path: NetworkPath) async -> ProbeResult
}

/// A probe that tries several addresses of a host in turn, as clients do (RFC 8305).
package protocol RacingProbe: Probe {
    /// Returns the TCP port of the watched host to which the probe connects; `nil` if it connects to another host.
    ///
    /// - Parameter host: The watched host; `nil` for ``PathTarget/general``.
    func destinationPort(for host: NetworkHost?) -> UInt16?

    /// Probes the paths in order until one carries traffic. The next attempt starts 250 ms after the previous one, or
    /// as soon as the previous one fails.
    ///
    /// - Parameters:
    ///   - host: The watched host.
    ///   - paths: At least one path: one for each reachable address of the host, the preferred one first.
    func run(to host: NetworkHost?, over paths: [NetworkPath]) async -> ProbeResult
}

/// Whether a path carries traffic, according to a probe.
public enum PathValidation: Hashable, Sendable {
    /// The path has not been probed.
    case none
    /// The path carries traffic.
    case valid
    /// A captive portal blocks the traffic until the user logs in or accepts its terms.
    case captive(CaptivePortal)
    /// The probe failed, with a human-readable reason.
    case failed(String)
}

/// The result of one probe.
public struct ProbeResult: Hashable, Sendable {
    /// Whether the path carries traffic.
    public let validation: PathValidation
    /// The time from the start of the probe to the answer; `nil` if there was no answer.
    public let latency: Duration?
    /// The properties of the network's captive portal; `nil` if the probe found none. A portal is also reported if it
    /// lets the traffic through.
    public let portal: CaptivePortal?
    /// The durations of the steps. `nil` if the probe does not measure them; only probes over HTTP do.
    public package(set) var phases: ProbePhases?

    /// Creates a result.
    ///
    /// - Parameters:
    ///   - validation: Whether the path carries traffic.
    ///   - latency: The time from the start of the probe to the answer. Default: `nil`, no answer.
    ///   - portal: A portal that lets the traffic through. Default: `nil`, no portal. Ignored if `validation` is
    ///     `captive`, because `validation` then contains the portal.
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

/// The properties of a captive portal. They correspond to the keys of RFC 8908 §5.
///
/// Only a portal with an API for RFC 8908 provides them all. If the portal was detected by its redirect, at most
/// ``userPortalURL`` is known.
public struct CaptivePortal: Hashable, Sendable {
    /// The URL of the page on which the user can log in or get instructions.
    public var userPortalURL: String?
    /// The URL of a page about the place where the network is, such as a hotel or a train.
    public var venueInfoURL: String?
    /// Whether the session can be extended at ``userPortalURL`` before it ends.
    public var canExtendSession: Bool?
    /// The number of seconds after which the portal blocks traffic again.
    public var secondsRemaining: UInt64?
    /// The number of bytes, sent and received together, after which the portal blocks traffic again.
    public var bytesRemaining: UInt64?

    /// Creates a portal without any known properties.
    public init() {}

    /// Creates a portal without known properties, except perhaps the URL of its page.
    public init(userPortalURL: String?) {
        self.userPortalURL = userPortalURL
    }
}

extension PathValidation: CustomStringConvertible {
    /// A human-readable description, such as `captive (https://portal.example/)` or `failed (connection refused)`.
    public var description: String {
        switch self {
        case .none: "not tried"
        case .valid: "valid"
        case .captive(let portal): portal.userPortalURL.map { "captive (\($0))" } ?? "captive"
        case .failed(let reason): "failed (\(reason))"
        }
    }
}

/// The durations of the steps of a probe. The duration of a step that did not occur, or that did not end, is `nil`.
public struct ProbePhases: Hashable, Sendable {
    /// The duration of the name lookup. `nil` also if the probe was sent to addresses that were known before.
    public var lookup: Duration?
    /// The duration of connecting, without TLS.
    public var connect: Duration?
    /// The duration of the TLS handshake.
    public var tls: Duration?
    /// The time from the beginning of the request to the first byte of the response.
    public var firstByte: Duration?

    /// Creates phases without durations.
    public init() {}
}
