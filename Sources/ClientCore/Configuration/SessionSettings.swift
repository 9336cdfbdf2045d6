internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTransport

/// The settings that a session reads from a `URLSessionConfiguration`. They are read once: later changes to the
/// configuration have no effect, as with URLSession.
struct SessionSettings: Sendable {
    /// Added to each request that has no field of the same name.
    let headers: HTTPHeaders
    /// The same fields, sorted, for requests that set no header fields.
    let sortedHeaders: [TransferRequest.Header]
    /// The maximum time without a byte in either direction.
    let idleTimeout: Duration
    /// The maximum duration of an attempt, including its redirects.
    let totalTimeout: Duration
    /// The maximum number of connections per host.
    let connectionsPerHost: Int
    /// The cookies of the session; `nil` without an `httpCookieStorage`.
    let cookies: CookieJar?
    /// Whether requests get a `Cookie` field.
    let sendsCookies: Bool
    /// The refused property and its value: the client does not support it and must not ignore it silently. The
    /// session then sends no requests.
    let refusal: String?
    /// The socket that all requests are sent to, instead of the hosts in their URLs.
    let unixSocketPath: String?

    /// Foundation's default of `timeoutIntervalForRequest`, in seconds.
    static let defaultIdleTimeout: TimeInterval = 60
    /// Foundation's default of `timeoutIntervalForResource`: seven days.
    static let defaultTotalTimeout: TimeInterval = 7 * 24 * 60 * 60

    /// Foundation's default of `httpMaximumConnectionsPerHost`.
    private static let defaultConnectionsPerHost = 6

    init(_ configuration: URLSessionConfiguration) {
        headers = Self.headers(configuration.httpAdditionalHeaders ?? [:])
        sortedHeaders = headers.sortedFields
        idleTimeout = .timeout(configuration.timeoutIntervalForRequest, else: Self.defaultIdleTimeout)
        totalTimeout = .timeout(configuration.timeoutIntervalForResource, else: Self.defaultTotalTimeout)
        connectionsPerHost = Self.connectionsPerHost(configuration.httpMaximumConnectionsPerHost)
        let policy = configuration.httpCookieAcceptPolicy
        cookies = configuration.httpCookieStorage.map { CookieJar($0, policy: policy) }
        sendsCookies = configuration.httpShouldSetCookies
        refusal = ConfigurationProperty.refusal(of: configuration)
        unixSocketPath = nil
    }

    /// Settings without header fields and cookies.
    init(unixSocketPath: String? = nil) {
        headers = [:]
        sortedHeaders = []
        idleTimeout = .seconds(Self.defaultIdleTimeout)
        totalTimeout = .seconds(Self.defaultTotalTimeout)
        connectionsPerHost = TransferPool.defaultConnectionsPerHost
        cookies = nil
        sendsCookies = false
        refusal = nil
        self.unixSocketPath = unixSocketPath
    }

    /// Returns the `Cookie` field that is added to a request, if any.
    func cookieField(for request: URLRequest) -> String? {
        guard sendsCookies, request.httpShouldHandleCookies, let url = request.url else { return nil }
        return cookies?.field(for: url)
    }

    /// Returns the maximum time without a byte in either direction for a request.
    ///
    /// That is the request's `timeoutInterval`, if set. Foundation cannot distinguish 60 as a set value from 60
    /// as the default, so 60 selects the session's value.
    func idleTimeout(of request: URLRequest) -> Duration {
        guard request.timeoutInterval != Self.defaultIdleTimeout else { return idleTimeout }
        return .timeout(request.timeoutInterval) ?? idleTimeout
    }

    /// Foundation cannot distinguish 6 as a set value from 6 as the default, so 6 selects netwatch's default.
    private static func connectionsPerHost(_ number: Int) -> Int {
        number == defaultConnectionsPerHost ? TransferPool.defaultConnectionsPerHost : max(1, number)
    }

    /// Names that differ only in case are the same field. The last in sorted order wins, so the result is the
    /// same on every run.
    private static func headers(_ fields: [AnyHashable: Any]) -> HTTPHeaders {
        var headers: HTTPHeaders = [:]
        var spellings: [String: String] = [:]
        let named = fields.compactMap { name, value in
            (name.base as? String).map { (name: $0, value: String(describing: value)) }
        }
        for (name, value) in named.sorted(by: { $0.name < $1.name }) {
            if let old = spellings.updateValue(name, forKey: name.lowercased()) { headers[old] = nil }
            headers[name] = value
        }
        return headers
    }
}

extension Duration {
    /// - Returns: `nil` for zero, which selects the next default. An infinite interval becomes 68 years.
    fileprivate static func timeout(_ interval: TimeInterval) -> Duration? {
        guard interval > 0 else { return nil }
        return .seconds(min(interval, TimeInterval(Int32.max)))
    }

    fileprivate static func timeout(_ interval: TimeInterval, else standard: TimeInterval) -> Duration {
        timeout(interval) ?? .seconds(standard)
    }
}
