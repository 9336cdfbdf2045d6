public import Foundation
internal import NetwatchEventLoop
package import NetwatchTransport
public import NetworkReachability

/// Finds out whether a captive portal stands in the way.
///
/// The network can tell, in DHCP option 114, DHCPv6 option 103 or the router advertisement option 37
/// (RFC 8910), which URL to ask: ``api(_:timeout:)``. Where it does not, a URL whose answer is known shows
/// whether somebody else answers: ``generate204(_:timeout:)``.
///
/// Requests leave by the path they are given and follow no redirect; see ``HTTPProbe``.
public struct CaptivePortalProbe: Probe, RacingProbe {
    private enum Question: Hashable, Sendable {
        case api
        case generate204
    }

    /// How long an attempt may take, from the name lookup to the last byte: 10 ms to 60 s.
    public static let acceptedTimeouts = ProbeExchange.acceptedTimeouts
    /// How long the API's answer may be, in bytes.
    public static let maximumBodySize = 64 * 1024

    /// What is asked.
    public let url: URL
    /// How long an attempt may take.
    public let timeout: Duration
    private let question: Question
    private let engine: TransferEngine

    private init(_ question: Question, _ url: URL, _ timeout: Duration, _ engine: TransferEngine) {
        self.question = question
        self.url = url
        self.timeout = timeout.clamped(to: Self.acceptedTimeouts)
        self.engine = engine
    }

    /// A probe that asks the network's own API (RFC 8908).
    ///
    /// Its answer is believed: `captive` or valid. Everything that is not such an answer is failed. Of its
    /// keys only `captive` has to be there and of the right type; the others are left out if they make no
    /// sense, and a `user-portal-url` that is not `https` (§5) is left out too.
    ///
    /// - Parameters:
    ///   - url: The URL that the network gave; an `https` one, as §4 demands.
    ///   - timeout: How long an attempt may take. Default 10 s; brought into ``acceptedTimeouts``.
    /// - Throws: ``InvalidProbe`` for another URL.
    public static func api(
        _ url: any URLConvertible,
        timeout: Duration = .seconds(10)
    ) throws(InvalidProbe) -> CaptivePortalProbe {
        try api(url, timeout: timeout, schemes: ["https"], engine: .shared)
    }

    /// - Parameter schemes: Tests serve the API without TLS.
    package static func api(
        _ url: any URLConvertible,
        timeout: Duration = .seconds(10),
        schemes: [String],
        engine: TransferEngine
    ) throws(InvalidProbe) -> CaptivePortalProbe {
        CaptivePortalProbe(.api, try ProbeURL.parse(url, schemes: schemes), timeout, engine)
    }

    /// A probe that asks for a page known to be empty.
    ///
    /// A status of 204, or 200 without a body, is valid. Any other answer of 200 to 399, and 511 (RFC 6585
    /// §6), comes from a portal, whose page is where it redirects to. 400 to 599 says nothing about a portal
    /// and is failed: Android and Chromium draw the line there too.
    ///
    /// - Parameters:
    ///   - url: An `http` URL, because a portal cannot answer for an `https` one.
    ///   - timeout: How long an attempt may take. Default 10 s; brought into ``acceptedTimeouts``.
    /// - Throws: ``InvalidProbe`` for another URL.
    public static func generate204(
        _ url: any URLConvertible,
        timeout: Duration = .seconds(10)
    ) throws(InvalidProbe) -> CaptivePortalProbe {
        try generate204(url, timeout: timeout, engine: .shared)
    }

    package static func generate204(
        _ url: any URLConvertible,
        timeout: Duration = .seconds(10),
        engine: TransferEngine
    ) throws(InvalidProbe) -> CaptivePortalProbe {
        CaptivePortalProbe(.generate204, try ProbeURL.parse(url, schemes: ["http"]), timeout, engine)
    }

    /// `captive-portal api` or `captive-portal 204`.
    public var name: String {
        switch question {
        case .api: "captive-portal api"
        case .generate204: "captive-portal 204"
        }
    }

    /// Makes one request.
    public func run(to host: NetworkHost?, over path: NetworkPath) async -> ProbeResult {
        await run(to: host, over: [path])
    }

    package func run(to host: NetworkHost?, over paths: [NetworkPath]) async -> ProbeResult {
        var request = TransferRequest(probing: url, for: host, over: paths, timeout: timeout)
        switch question {
        case .api:
            request.headers.append(.init("Accept", CaptivePortalState.mediaType))
            request.maximumResponseBodyBytes = Self.maximumBodySize
            return judgeAPI(await ProbeExchange.run(request, on: engine))
        case .generate204:
            // One byte is enough to tell a page from none.
            request.maximumResponseBodyBytes = 0
            let exchange = await ProbeExchange.run(request, on: engine)
            return exchange.result(judgeEmptyPage(exchange))
        }
    }

    // MARK: RFC 8908

    private func judgeAPI(_ exchange: ProbeExchange) -> ProbeResult {
        if let status = exchange.head?.status, status != 200 {
            return exchange.result(exchange.unexpectedStatus(status))
        }
        if let failure = exchange.failure {
            return exchange.result(.failed(failure.words(timeout: timeout)))
        }
        do throws(CaptivePortalState.Malformed) {
            let type = exchange.header("Content-Type")
            let state = try CaptivePortalState(mediaType: type, body: Data(exchange.body))
            return exchange.result(state.isCaptive ? .captive(state.portal) : .valid, portal: state.portal)
        } catch {
            return exchange.result(.failed(error.description))
        }
    }

    // MARK: The page that is known to be empty

    private func judgeEmptyPage(_ exchange: ProbeExchange) -> PathValidation {
        switch exchange.head?.status {
        case 204: .valid
        case 200: judgeBody(exchange)
        case .some(200...399), 511: .captive(CaptivePortal(userPortalURL: portalURL(exchange)))
        case .some(let status): exchange.unexpectedStatus(status)
        case nil: failed(exchange)
        }
    }

    private func judgeBody(_ exchange: ProbeExchange) -> PathValidation {
        switch exchange.failure?.code {
        case nil: .valid
        // CURLE_FILESIZE_EXCEEDED: there is a body.
        case 63: .captive(CaptivePortal(userPortalURL: portalURL(exchange)))
        default: failed(exchange)
        }
    }

    private func portalURL(_ exchange: ProbeExchange) -> String? {
        exchange.header("Location")
            .flatMap { ProbeURL.opened(by: $0, from: url, schemes: ["http", "https"]) }
    }

    private func failed(_ exchange: ProbeExchange) -> PathValidation {
        .failed(exchange.failure?.words(timeout: timeout) ?? "no answer")
    }
}
