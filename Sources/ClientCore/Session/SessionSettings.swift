internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTransport

/// What a session takes from a `URLSessionConfiguration`, once: changing the configuration afterwards changes
/// nothing, as with URLSession.
struct SessionSettings: Sendable {
    /// Added to each request that has no field of that name.
    let headers: HTTPHeaders
    /// The same, as a request without any of its own sends them.
    let sortedHeaders: [TransferRequest.Header]
    /// How long no byte may go either way.
    let idleTimeout: Duration
    /// How long a request may take with everything, retries excepted.
    let totalTimeout: Duration
    /// How many connections to one host there are at most.
    let connectionsPerHost: Int
    /// Where cookies come from and go to. `nil` without a `httpCookieStorage`.
    let cookies: CookieJar?
    /// Whether requests get a `Cookie` field.
    let sendsCookies: Bool
    /// The property that asks for what this client does not do and must not leave out silently, with what it
    /// asks for. A session with one makes no request.
    let refusal: String?
    /// Where everything is sent to in place of the hosts that URLs name.
    let unixSocketPath: String?

    /// Foundation's own (`timeoutIntervalForRequest`).
    static let defaultIdleTimeout: TimeInterval = 60
    /// Foundation's own (`timeoutIntervalForResource`): seven days.
    static let defaultTotalTimeout: TimeInterval = 7 * 24 * 60 * 60

    /// Foundation's own (`httpMaximumConnectionsPerHost`).
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

    /// A session that says nothing and remembers nothing by itself.
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

    /// The `Cookie` field that is added to a request, if any.
    func cookieField(for request: URLRequest) -> String? {
        guard sendsCookies, request.httpShouldHandleCookies, let url = request.url else { return nil }
        return cookies?.field(for: url)
    }

    /// How long no byte of a request may go either way.
    ///
    /// Its own `timeoutInterval` if that was set. Foundation cannot tell 60 that was set from 60 that is the
    /// default, so 60 means the session's.
    func idleTimeout(of request: URLRequest) -> Duration {
        guard request.timeoutInterval != Self.defaultIdleTimeout else { return idleTimeout }
        return .timeout(request.timeoutInterval) ?? idleTimeout
    }

    /// Foundation cannot tell 6 that was set from 6 that is the default, so 6 means netwatch's own.
    private static func connectionsPerHost(_ number: Int) -> Int {
        number == defaultConnectionsPerHost ? TransferPool.defaultConnectionsPerHost : max(1, number)
    }

    /// Names that differ in case are one field; the last of them in sorted order wins, on every run.
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
    /// - Returns: `nil` for zero, which stands for whatever is next in line. Endless is 68 years.
    fileprivate static func timeout(_ interval: TimeInterval) -> Duration? {
        guard interval > 0 else { return nil }
        return .seconds(min(interval, TimeInterval(Int32.max)))
    }

    fileprivate static func timeout(_ interval: TimeInterval, else standard: TimeInterval) -> Duration {
        timeout(interval) ?? .seconds(standard)
    }
}
