public import Foundation
internal import NetwatchEventLoop
package import NetwatchTransport
public import NetworkReachability

/// A probe that checks whether a captive portal intercepts requests.
///
/// There are two kinds:
///
/// - ``api(_:timeout:)`` queries the portal's API. The network announces the URL of the API in DHCP option 114, DHCPv6
///   option 103 or router advertisement option 37 (RFC 8910).
/// - ``generate204(_:timeout:)`` needs no announcement. It requests a URL with a known, empty response. Another
///   response shows that a portal has responded instead of the server.
///
/// Requests follow no redirect, and are routed as those of ``HTTPProbe``.
///
/// ```swift
/// let probe = try CaptivePortalProbe.generate204("http://example.com/generate_204")
/// for await result in monitor.validatedStatuses(of: .general, by: probe) {
///     if case .captive(let portal) = result.validation { print(portal.userPortalURL ?? "a portal") }
/// }
/// ```
public struct CaptivePortalProbe: Probe, RacingProbe {
    private enum Question: Hashable, Sendable {
        case api
        case generate204
    }

    /// The accepted time limits of an attempt, from the name lookup to the last byte: 10 ms to 60 s.
    public static let acceptedTimeouts = ProbeExchange.acceptedTimeouts
    /// The maximum length of the body of the API's response: 64 KiB.
    public static let maximumBodySize = 64 * 1024

    /// The URL that is requested.
    public let url: URL
    /// The time limit of an attempt.
    public let timeout: Duration
    private let question: Question
    private let engine: TransferEngine

    private init(_ question: Question, _ url: URL, _ timeout: Duration, _ engine: TransferEngine) {
        self.question = question
        self.url = url
        self.timeout = timeout.clamped(to: Self.acceptedTimeouts)
        self.engine = engine
    }

    /// Returns a probe that queries the network's own API (RFC 8908).
    ///
    /// The key `captive` in the API's response decides whether the result is `captive` or valid. A response without
    /// this key, or in another format, fails the probe. Other keys are optional, and ignored if their values are
    /// invalid. A `user-portal-url` is valid only with `https` (§5).
    ///
    /// - Parameters:
    ///   - url: The `https` URL announced by the network (§4 requires `https`).
    ///   - timeout: The time limit of an attempt. Default: 10 s. Clamped to ``acceptedTimeouts``.
    /// - Throws: ``InvalidProbe`` for any other URL.
    public static func api(
        _ url: any URLConvertible,
        timeout: Duration = HTTPProbe.defaultTimeout
    ) throws(InvalidProbe) -> CaptivePortalProbe {
        try api(url, timeout: timeout, schemes: ["https"], engine: .shared)
    }

    /// - Parameter schemes: The accepted schemes. Tests serve the API without TLS.
    package static func api(
        _ url: any URLConvertible,
        timeout: Duration = HTTPProbe.defaultTimeout,
        schemes: [String],
        engine: TransferEngine
    ) throws(InvalidProbe) -> CaptivePortalProbe {
        CaptivePortalProbe(.api, try ProbeURL.parse(url, schemes: schemes), timeout, engine)
    }

    /// Returns a probe that requests a page known to be empty.
    ///
    /// | response | result |
    /// |---|---|
    /// | 204, or 200 without a body | valid |
    /// | any other status from 200 to 399, and 511 (RFC 6585 §6) | `captive`; `Location` leads to the portal's page |
    /// | any other status | failed, because it does not indicate a portal |
    ///
    /// Android and Chromium classify statuses in the same way.
    ///
    /// - Parameters:
    ///   - url: An `http` URL, because a portal cannot respond in place of an `https` server.
    ///   - timeout: The time limit of an attempt. Default: 10 s. Clamped to ``acceptedTimeouts``.
    /// - Throws: ``InvalidProbe`` for any other URL.
    public static func generate204(
        _ url: any URLConvertible,
        timeout: Duration = HTTPProbe.defaultTimeout
    ) throws(InvalidProbe) -> CaptivePortalProbe {
        try generate204(url, timeout: timeout, engine: .shared)
    }

    package static func generate204(
        _ url: any URLConvertible,
        timeout: Duration = HTTPProbe.defaultTimeout,
        engine: TransferEngine
    ) throws(InvalidProbe) -> CaptivePortalProbe {
        CaptivePortalProbe(.generate204, try ProbeURL.parse(url, schemes: ["http"]), timeout, engine)
    }

    /// The kind of the probe: `captive-portal api` or `captive-portal 204`.
    public var name: String {
        switch question {
        case .api: "captive-portal api"
        case .generate204: "captive-portal 204"
        }
    }

    /// Sends one request.
    public func run(to host: NetworkHost?, over path: NetworkPath) async -> ProbeResult {
        await run(to: host, over: [path])
    }

    package func destinationPort(for host: NetworkHost?) -> UInt16? { nil }

    package func run(to host: NetworkHost?, over paths: [NetworkPath]) async -> ProbeResult {
        var request = TransferRequest(probing: url, for: host, over: paths, timeout: timeout)
        switch question {
        case .api:
            request.headers.append(.init("Accept", CaptivePortalState.mediaType))
            request.maximumResponseBodyBytes = Self.maximumBodySize
            return classifyAPI(await ProbeExchange.run(request, on: engine))
        case .generate204:
            // With a limit of 0 the transfer fails at the first byte of a body, which is enough to detect a page.
            request.maximumResponseBodyBytes = 0
            let exchange = await ProbeExchange.run(request, on: engine)
            return exchange.result(classifyEmptyPage(exchange))
        }
    }

    // MARK: RFC 8908

    private func classifyAPI(_ exchange: ProbeExchange) -> ProbeResult {
        if let status = exchange.head?.status, status != 200 {
            return exchange.result(exchange.unexpectedStatus(status))
        }
        if let failure = exchange.failure {
            return exchange.result(.failed(failure.message(timeout: timeout)))
        }
        do throws(CaptivePortalState.Malformed) {
            let type = exchange.header("Content-Type")
            let state = try CaptivePortalState(mediaType: type, body: Data(exchange.body))
            return exchange.result(state.isCaptive ? .captive(state.portal) : .valid, portal: state.portal)
        } catch {
            return exchange.result(.failed(error.description))
        }
    }

    // MARK: Empty page

    private func classifyEmptyPage(_ exchange: ProbeExchange) -> PathValidation {
        switch exchange.head?.status {
        case 204: .valid
        case 200: classifyBody(exchange)
        case .some(200...399), 511: .captive(CaptivePortal(userPortalURL: portalURL(exchange)))
        case .some(let status): exchange.unexpectedStatus(status)
        case nil: failed(exchange)
        }
    }

    private func classifyBody(_ exchange: ProbeExchange) -> PathValidation {
        switch exchange.failure?.code {
        case nil: .valid
        // CURLE_FILESIZE_EXCEEDED: the response has a body.
        case 63: .captive(CaptivePortal(userPortalURL: portalURL(exchange)))
        default: failed(exchange)
        }
    }

    private func portalURL(_ exchange: ProbeExchange) -> String? {
        exchange.header("Location")
            .flatMap { ProbeURL.opened(by: $0, from: url, schemes: ["http", "https"]) }
    }

    private func failed(_ exchange: ProbeExchange) -> PathValidation {
        .failed(exchange.failure?.message(timeout: timeout) ?? "no response")
    }
}

/// The response of a captive portal's API (RFC 8908 §5).
struct CaptivePortalState: Hashable, Sendable {
    /// Why a response is invalid.
    struct Malformed: Error, Hashable, CustomStringConvertible {
        let description: String
    }

    static let mediaType = "application/captive+json"

    let isCaptive: Bool
    let portal: CaptivePortal

    /// Parses a response.
    ///
    /// - Parameters:
    ///   - mediaType: The response's `Content-Type`.
    ///   - body: The response's body, which must be JSON.
    /// - Throws: ``Malformed`` if the type is not ``mediaType``, if the body is not a JSON object, or if its key
    ///   `captive` is missing or not a Boolean.
    init(mediaType: String?, body: Data) throws(Malformed) {
        guard Self.isOurs(mediaType) else {
            let found = mediaType.map { "`\($0.printable(upTo: ProbeExchange.longestText))`" } ?? "missing"
            throw Malformed(description: "the content type is \(found); \(Self.mediaType) is required")
        }
        do {
            let keys = try JSONDecoder().decode(Keys.self, from: body)
            isCaptive = keys.isCaptive
            portal = keys.portal
        } catch {
            throw Malformed(description: "the response is not a JSON object with a Boolean `captive`")
        }
    }

    /// Returns whether a media type equals ``mediaType``; parameters and case are ignored (RFC 9110 §8.3.1).
    private static func isOurs(_ mediaType: String?) -> Bool {
        let type = mediaType?.prefix { $0 != ";" } ?? ""
        return type.trimmingCharacters(in: .whitespaces).lowercased() == Self.mediaType
    }

    private struct Keys: Decodable {
        enum CodingKeys: String, CodingKey {
            case captive
            case userPortalURL = "user-portal-url"
            case venueInfoURL = "venue-info-url"
            case canExtendSession = "can-extend-session"
            case secondsRemaining = "seconds-remaining"
            case bytesRemaining = "bytes-remaining"
        }

        let isCaptive: Bool
        let portal: CaptivePortal

        init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: CodingKeys.self)
            isCaptive = try values.decode(Bool.self, forKey: .captive)
            var portal = CaptivePortal()
            portal.userPortalURL = Self.url(.userPortalURL, in: values, schemes: ["https"])
            portal.venueInfoURL = Self.url(.venueInfoURL, in: values, schemes: ["http", "https"])
            portal.canExtendSession = try? values.decode(Bool.self, forKey: .canExtendSession)
            portal.secondsRemaining = try? values.decode(UInt64.self, forKey: .secondsRemaining)
            portal.bytesRemaining = try? values.decode(UInt64.self, forKey: .bytesRemaining)
            self.portal = portal
        }

        private static func url(
            _ key: CodingKeys,
            in values: KeyedDecodingContainer<CodingKeys>,
            schemes: [String]
        ) -> String? {
            (try? values.decode(String.self, forKey: key))
                .flatMap { ProbeURL.opened(by: $0, from: nil, schemes: schemes) }
        }
    }
}
