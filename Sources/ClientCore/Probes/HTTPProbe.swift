public import Foundation
internal import NetwatchEventLoop
package import NetwatchTransport
public import NetworkReachability

/// Finds out whether an HTTP(S) server answers as it should.
///
/// The request leaves by the path it is given, on a connection of its own. It carries no cookies, uses no
/// proxy and follows no redirect: a redirect is an answer with a status of 300 to 399. When the URL names the
/// watched host it goes to the path's destination, and to the other addresses of the host if that does not answer
/// (RFC 8305); another name is looked up, over whatever path name servers are reached by. Sockets belong to the process's
/// own network namespace.
///
/// Valid is a whole answer, in time and within the limit of size, with the status and body that are expected.
/// `https` proves in addition that it comes from the server, which no portal can pretend.
public struct HTTPProbe: Probe, RacingProbe {
    /// The methods of a probe.
    public enum Method: String, Hashable, Sendable, CaseIterable {
        /// `GET`
        case get = "GET"
        /// `HEAD`: the answer has no body.
        case head = "HEAD"
    }

    /// What the body of the answer is held against, byte by byte.
    public enum ExpectedBody: Hashable, Sendable {
        /// It begins with these bytes.
        case prefix(Data)
        /// These bytes occur in it.
        case contains(Data)
    }

    /// How long an attempt may take, from the name lookup to the last byte: 10 ms to 60 s.
    public static let acceptedTimeouts = ProbeExchange.acceptedTimeouts
    /// How long the body may be, in bytes: 0 to 1 MiB.
    public static let acceptedBodySizes = 0...1_048_576

    /// Where the request goes.
    public let url: URL
    /// The method of the request.
    public let method: Method
    /// The statuses that are valid.
    public let expectedStatus: ClosedRange<Int>
    /// What the body has to be; `nil` for anything.
    public let expectedBody: ExpectedBody?
    /// How long an attempt may take.
    public let timeout: Duration
    /// How long the body may be, in bytes.
    public let maximumBodySize: Int
    /// Whether each request gets a query of its own.
    public let bypassesCaches: Bool
    private let engine: TransferEngine

    /// Makes a probe.
    ///
    /// - Parameters:
    ///   - url: An `http` or `https` URL.
    ///   - method: Default `GET`.
    ///   - expectedStatus: The statuses that are valid. Default 200 to 299.
    ///   - expectedBody: What the body has to be. Default `nil`, anything.
    ///   - timeout: How long an attempt may take. Default 10 s; brought into ``acceptedTimeouts``.
    ///   - maximumBodySize: How long the body may be, in bytes. A longer one is failed, whatever it says.
    ///     Default 64 KiB; brought into ``acceptedBodySizes``.
    ///   - bypassesCaches: Whether each request gets a query of its own (`netwatch=` and a random number),
    ///     for the sake of caches that ignore `Cache-Control: no-cache`. Default false.
    /// - Throws: ``InvalidProbe`` for another URL, and for a `HEAD` that expects a body.
    public init(
        url: any URLConvertible,
        method: Method = .get,
        expectedStatus: ClosedRange<Int> = 200...299,
        expectedBody: ExpectedBody? = nil,
        timeout: Duration = .seconds(10),
        maximumBodySize: Int = 64 * 1024,
        bypassesCaches: Bool = false
    ) throws(InvalidProbe) {
        try self.init(
            url: url,
            method: method,
            expectedStatus: expectedStatus,
            expectedBody: expectedBody,
            timeout: timeout,
            maximumBodySize: maximumBodySize,
            bypassesCaches: bypassesCaches,
            engine: .shared
        )
    }

    package init(
        url: any URLConvertible,
        method: Method = .get,
        expectedStatus: ClosedRange<Int> = 200...299,
        expectedBody: ExpectedBody? = nil,
        timeout: Duration = .seconds(10),
        maximumBodySize: Int = 64 * 1024,
        bypassesCaches: Bool = false,
        engine: TransferEngine
    ) throws(InvalidProbe) {
        guard method != .head || expectedBody == nil else {
            throw InvalidProbe("the answer to `HEAD` has no body; use `GET` to expect one")
        }
        self.url = try ProbeURL.parse(url, schemes: ["http", "https"])
        self.method = method
        self.expectedStatus = expectedStatus
        self.expectedBody = expectedBody
        self.timeout = timeout.clamped(to: Self.acceptedTimeouts)
        let sizes = Self.acceptedBodySizes
        self.maximumBodySize = min(max(maximumBodySize, sizes.lowerBound), sizes.upperBound)
        self.bypassesCaches = bypassesCaches
        self.engine = engine
    }

    /// The scheme of the URL: `http` or `https`.
    public var name: String { url.scheme?.lowercased() ?? "" }

    /// Makes one request.
    public func run(to host: NetworkHost?, over path: NetworkPath) async -> ProbeResult {
        await run(to: host, over: [path])
    }

    package func run(to host: NetworkHost?, over paths: [NetworkPath]) async -> ProbeResult {
        let target = bypassesCaches ? url.withUniqueQuery : url
        var request = TransferRequest(probing: target, for: host, over: paths, timeout: timeout)
        request.method = method.rawValue
        request.maximumResponseBodyBytes = maximumBodySize
        let exchange = await ProbeExchange.run(request, on: engine)
        return exchange.result(judge(exchange))
    }

    private func judge(_ exchange: ProbeExchange) -> PathValidation {
        if let status = exchange.head?.status, !expectedStatus.contains(status) {
            return exchange.unexpectedStatus(status)
        }
        if let failure = exchange.failure { return .failed(failure.words(timeout: timeout)) }
        return judge(Data(exchange.body))
    }

    private func judge(_ body: Data) -> PathValidation {
        switch expectedBody {
        case .prefix(let prefix) where !body.starts(with: prefix):
            .failed("the body does not begin with what is expected")
        case .contains(let part) where !part.isEmpty && body.range(of: part) == nil:
            .failed("the body does not contain what is expected")
        default: .valid
        }
    }
}

extension URL {
    /// The same URL with one more query item, which no cache has seen.
    fileprivate var withUniqueQuery: URL {
        guard var components = URLComponents(url: self, resolvingAgainstBaseURL: true) else { return self }
        let item = "netwatch=\(String(UInt64.random(in: 0 ... .max), radix: 36))"
        let query = components.percentEncodedQuery
        components.percentEncodedQuery = query.map { "\($0)&\(item)" } ?? item
        return components.url ?? self
    }
}
