public import Foundation
internal import NetwatchEventLoop
package import NetwatchTransport
public import NetworkReachability

/// A probe that checks whether an HTTP(S) server responds as expected.
///
/// ```swift
/// let probe = try HTTPProbe(url: "https://example.com/health", expectedBody: .contains(Data("ok".utf8)))
/// for await result in monitor.validatedStatuses(of: .host(host), by: probe) { print(result.validation) }
/// ```
///
/// The request uses a separate connection, for which the kernel chooses the route, as for the connections of programs.
/// Only an interface and a source address that `PathOptions` require are bound. The request sends no cookies, uses no
/// proxy and follows no redirect: a redirect counts as a response with a status of 300 to 399.
///
/// The host in the URL decides where the request goes:
///
/// - The watched host: to the address that the path leads to. If no connection to it succeeds, the host's other
///   addresses are tried (RFC 8305).
/// - Any other host: to the addresses that its name resolves to. The lookup may use any path to the name servers.
///
/// The probe runs in the network namespace of the process.
///
/// The probe is valid if a complete response with the expected status and body arrives in time and within the size
/// limit. With `https`, a valid result also proves that the response came from the server: a captive portal cannot
/// forge its certificate.
public struct HTTPProbe: Probe, RacingProbe {
    /// The methods of a probe.
    public enum Method: String, Hashable, Sendable, CaseIterable {
        /// `GET`
        case get = "GET"
        /// `HEAD`. The response has no body.
        case head = "HEAD"
    }

    /// The expected content of the response body, compared byte by byte.
    public enum ExpectedBody: Hashable, Sendable {
        /// The body begins with these bytes.
        case prefix(Data)
        /// The body contains these bytes.
        case contains(Data)
    }

    /// The accepted time limits of an attempt, from the name lookup to the last byte: 10 ms to 60 s.
    public static let acceptedTimeouts = ProbeExchange.acceptedTimeouts
    /// The default time limit of an attempt: 10 s. It is longer than that of `TCPProbe`, because an attempt includes
    /// the lookup, the TLS handshake and the response.
    public static let defaultTimeout: Duration = .seconds(10)
    /// The accepted limits of the body's length in bytes: 0 to 1 MiB.
    public static let acceptedBodySizes = 0...1_048_576

    /// The URL of the request.
    public let url: URL
    /// The method of the request.
    public let method: Method
    /// The status codes that count as valid.
    public let expectedStatus: ClosedRange<Int>
    /// The expected body; `nil` accepts any body.
    public let expectedBody: ExpectedBody?
    /// The time limit of an attempt.
    public let timeout: Duration
    /// The maximum length of the body in bytes.
    public let maximumBodySize: Int
    /// Whether each request gets a unique query, so that no cache can respond to it.
    public let bypassesCaches: Bool
    /// The version of HTTP.
    public let httpVersion: HTTPVersion
    private let engine: TransferEngine

    /// Creates a probe.
    ///
    /// - Parameters:
    ///   - url: An `http` or `https` URL.
    ///   - method: Default: `GET`.
    ///   - expectedStatus: The status codes that count as valid. Default: 200 to 299.
    ///   - expectedBody: The expected body. Default: `nil`, any body.
    ///   - timeout: The time limit of an attempt. Default: 10 s. Clamped to ``acceptedTimeouts``.
    ///   - maximumBodySize: The maximum length of the body in bytes. A longer body fails the probe, even if it
    ///     contains the expected bytes. Default: 64 KiB. Clamped to ``acceptedBodySizes``.
    ///   - bypassesCaches: Whether each request gets a unique query (`netwatch=` and a random number). Some caches
    ///     ignore `Cache-Control: no-cache`, which every probe sends. Default: false.
    ///   - httpVersion: The version of HTTP. Default: ``HTTPVersion/http2``.
    /// - Throws: ``InvalidProbe`` for any other URL, and for `HEAD` with an expected body.
    public init(
        url: any URLConvertible,
        method: Method = .get,
        expectedStatus: ClosedRange<Int> = 200...299,
        expectedBody: ExpectedBody? = nil,
        timeout: Duration = Self.defaultTimeout,
        maximumBodySize: Int = 64 * 1024,
        bypassesCaches: Bool = false,
        httpVersion: HTTPVersion = .http2
    ) throws(InvalidProbe) {
        try self.init(
            url: url,
            method: method,
            expectedStatus: expectedStatus,
            expectedBody: expectedBody,
            timeout: timeout,
            maximumBodySize: maximumBodySize,
            bypassesCaches: bypassesCaches,
            httpVersion: httpVersion,
            engine: .shared
        )
    }

    package init(
        url: any URLConvertible,
        method: Method = .get,
        expectedStatus: ClosedRange<Int> = 200...299,
        expectedBody: ExpectedBody? = nil,
        timeout: Duration = Self.defaultTimeout,
        maximumBodySize: Int = 64 * 1024,
        bypassesCaches: Bool = false,
        httpVersion: HTTPVersion = .http2,
        engine: TransferEngine
    ) throws(InvalidProbe) {
        guard method != .head || expectedBody == nil else {
            throw InvalidProbe("a response to `HEAD` has no body; use `GET` with an expected body")
        }
        self.url = try ProbeURL.parse(url, schemes: ["http", "https"])
        self.method = method
        self.expectedStatus = expectedStatus
        self.expectedBody = expectedBody
        self.timeout = timeout.clamped(to: Self.acceptedTimeouts)
        let sizes = Self.acceptedBodySizes
        self.maximumBodySize = min(max(maximumBodySize, sizes.lowerBound), sizes.upperBound)
        self.bypassesCaches = bypassesCaches
        self.httpVersion = httpVersion
        self.engine = engine
    }

    /// The scheme of the URL: `http` or `https`.
    public var name: String { url.scheme?.lowercased() ?? "" }

    package func destinationPort(for host: NetworkHost?) -> UInt16? {
        guard let host, url.names(host) else { return nil }
        return url.effectivePort.flatMap { UInt16(exactly: $0) }
    }

    /// Sends one request.
    public func run(to host: NetworkHost?, over path: NetworkPath) async -> ProbeResult {
        await run(to: host, over: [path])
    }

    package func run(to host: NetworkHost?, over paths: [NetworkPath]) async -> ProbeResult {
        let exchange = await ProbeExchange.run(request(to: host, over: paths), on: engine)
        return exchange.result(validation(of: exchange))
    }

    func request(to host: NetworkHost?, over paths: [NetworkPath]) -> TransferRequest {
        let target = bypassesCaches ? url.withUniqueQuery : url
        var request = TransferRequest(probing: target, for: host, over: paths, timeout: timeout)
        request.method = method.rawValue
        request.maximumResponseBodyBytes = maximumBodySize
        request.usesHTTP1 = httpVersion == .http1
        return request
    }

    private func validation(of exchange: ProbeExchange) -> PathValidation {
        if let status = exchange.head?.status, !expectedStatus.contains(status) {
            return exchange.unexpectedStatus(status, after: method)
        }
        if let failure = exchange.failure { return .failed(failure.message(timeout: timeout)) }
        return validation(of: Data(exchange.body))
    }

    private func validation(of body: Data) -> PathValidation {
        switch expectedBody {
        case .prefix(let prefix) where !body.starts(with: prefix):
            .failed("the body does not begin with the expected bytes")
        case .contains(let part) where !part.isEmpty && body.range(of: part) == nil:
            .failed("the body does not contain the expected bytes")
        default: .valid
        }
    }
}

extension URL {
    /// The URL with an additional random query item, so that no cache has an entry for the result.
    fileprivate var withUniqueQuery: URL {
        guard var components = URLComponents(url: self, resolvingAgainstBaseURL: true) else { return self }
        let item = "netwatch=\(String(UInt64.random(in: 0 ... .max), radix: 36))"
        let query = components.percentEncodedQuery
        components.percentEncodedQuery = query.map { "\($0)&\(item)" } ?? item
        return components.url ?? self
    }
}

/// The error for invalid parameters of a probe.
public struct InvalidProbe: Error, Hashable, Sendable, CustomStringConvertible {
    /// A message that says what is invalid, and what is accepted.
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// Checks URLs for probes.
enum ProbeURL {
    /// The maximum length in bytes of a URL from a portal. RFC 9110 §4.1 recommends that URLs of at least 8000 bytes
    /// are supported.
    static let longestFromPortal = 8000

    /// Parses the URL of a probe.
    ///
    /// - Throws: ``InvalidProbe`` if `url` is not a URL with a host and one of the schemes.
    static func parse(_ url: any URLConvertible, schemes: [String]) throws(InvalidProbe) -> URL {
        let accepted = schemes.map { "\($0)://HOST/…" }.joined(separator: " or ")
        guard let parsed = try? url.asURL() else {
            let shown = RedactedURL.text(ofUnchecked: "\(url)")
            throw InvalidProbe("`\(shown)` is not a URL; \(accepted) is accepted")
        }
        guard let scheme = parsed.scheme?.lowercased(), schemes.contains(scheme), isHost(parsed.host) else {
            throw InvalidProbe("`\(parsed.textWithoutSecrets)` cannot be probed; \(accepted) is accepted")
        }
        return parsed
    }

    /// Returns the absolute form of a URL that a portal wants the user to open.
    ///
    /// - Returns: `nil` if the URL is too long or has no host, or if its scheme is not one of `schemes`: a program that
    ///   opens URLs would also open `file:` and `javascript:`.
    static func opened(by text: String, from base: URL?, schemes: [String]) -> String? {
        guard text.utf8.count <= longestFromPortal else { return nil }
        guard let url = URL(string: text, relativeTo: base)?.absoluteURL else { return nil }
        guard let scheme = url.scheme?.lowercased(), schemes.contains(scheme) else { return nil }
        return isHost(url.host) ? url.absoluteString : nil
    }

    private static func isHost(_ host: String?) -> Bool {
        host?.isEmpty == false
    }
}
