internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTransport

/// The settings that a session reads from a `URLSessionConfiguration` when it is created. Later changes to the
/// configuration have no effect, as with `URLSession`.
struct SessionSettings: Sendable {
    /// The header fields that are added to each request. A request's own field of the same name overrides them.
    let headers: HTTPHeaders
    /// The fields of a request that sets none: ``headers`` sorted by name, and `User-Agent` if it is missing. All such
    /// requests share this array.
    let sortedHeaders: [TransferRequest.Header]
    /// The maximum time during which a connection neither sends nor receives a byte.
    let idleTimeout: Duration
    /// The maximum duration of an attempt, including its redirects.
    let totalTimeout: Duration
    /// The maximum number of connections per host.
    let connectionsPerHost: Int
    /// The cookies of the session; `nil` without an `httpCookieStorage`.
    let cookies: CookieJar?
    /// Whether requests get a `Cookie` field.
    let sendsCookies: Bool
    /// The reason why the configuration is refused: a property that netwatch does not support and must not
    /// ignore. `nil` if the configuration is accepted. A session with a refused configuration sends no requests.
    let refusal: String?
    /// The path of the unix socket to which all requests are sent, instead of the hosts in their URLs, as an
    /// `ExactText`; `nil` for TCP.
    let unixSocketPath: String?

    /// Foundation's default of `timeoutIntervalForRequest`, in seconds.
    static let defaultIdleTimeout: TimeInterval = 60
    /// Foundation's default of `timeoutIntervalForResource`: seven days.
    static let defaultTotalTimeout: TimeInterval = 7 * 24 * 60 * 60

    /// Foundation's default of `httpMaximumConnectionsPerHost`.
    private static let defaultConnectionsPerHost = 6

    init(_ configuration: URLSessionConfiguration) {
        headers = Self.headers(configuration.httpAdditionalHeaders ?? [:])
        sortedHeaders = headers.sortedFields.addingUserAgent()
        idleTimeout = .timeout(configuration.timeoutIntervalForRequest, else: Self.defaultIdleTimeout)
        totalTimeout = .timeout(configuration.timeoutIntervalForResource, else: Self.defaultTotalTimeout)
        connectionsPerHost = Self.connectionsPerHost(configuration.httpMaximumConnectionsPerHost)
        let policy = configuration.httpCookieAcceptPolicy
        cookies = configuration.httpCookieStorage.map { CookieJar($0, policy: policy) }
        sendsCookies = configuration.httpShouldSetCookies
        refusal = ConfigurationProperty.refusal(of: configuration)
        unixSocketPath = nil
    }

    /// Creates settings without header fields and cookies.
    init(unixSocketPath: String? = nil) {
        headers = [:]
        sortedHeaders = headers.sortedFields.addingUserAgent()
        idleTimeout = .seconds(Self.defaultIdleTimeout)
        totalTimeout = .seconds(Self.defaultTotalTimeout)
        connectionsPerHost = TransferPool.defaultConnectionsPerHost
        cookies = nil
        sendsCookies = false
        refusal = nil
        self.unixSocketPath = unixSocketPath
    }

    /// Returns the value of the `Cookie` field for a request; `nil` if no cookie is sent.
    func cookieField(for request: URLRequest) -> String? {
        guard sendsCookies, request.httpShouldHandleCookies, let url = request.url else { return nil }
        return cookies?.field(for: url)
    }

    /// Returns the idle timeout of a request: its `timeoutInterval`, or the session's idle timeout if that is 60.
    ///
    /// 60 is Foundation's default, which cannot be distinguished from a 60 that the program has set.
    func idleTimeout(of request: URLRequest) -> Duration {
        guard request.timeoutInterval != Self.defaultIdleTimeout else { return idleTimeout }
        return .timeout(request.timeoutInterval) ?? idleTimeout
    }

    /// Returns the connection limit per host. 6 selects netwatch's default, because 6 is Foundation's default and
    /// cannot be distinguished from a 6 that the program has set.
    private static func connectionsPerHost(_ number: Int) -> Int {
        number == defaultConnectionsPerHost ? TransferPool.defaultConnectionsPerHost : max(1, number)
    }

    /// Converts header fields. Names that differ only in case are the same field: the field whose name sorts last is
    /// kept, so that the result is the same on every run.
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
    /// Converts an interval in seconds. Returns `nil` for 0: the caller then uses its own default. An infinite interval
    /// becomes 68 years, because adding much more to a time would overflow.
    fileprivate static func timeout(_ interval: TimeInterval) -> Duration? {
        guard interval > 0 else { return nil }
        return .seconds(min(interval, TimeInterval(Int32.max)))
    }

    fileprivate static func timeout(_ interval: TimeInterval, else standard: TimeInterval) -> Duration {
        timeout(interval) ?? .seconds(standard)
    }
}

/// The properties of a `URLSessionConfiguration` on Linux, grouped by how netwatch treats them.
///
/// netwatch ignores an unsupported property if that is harmless. It refuses the configuration if ignoring the
/// property would send data to a destination, or by a route, that the program has ruled out.
enum ConfigurationProperty: String, CaseIterable, Sendable {
    // Used. Refused only if the value is invalid.
    case httpAdditionalHeaders
    case timeoutIntervalForRequest
    case timeoutIntervalForResource
    case httpCookieStorage
    case httpCookieAcceptPolicy
    case httpShouldSetCookies
    case httpMaximumConnectionsPerHost

    // Refused, unless the value requests what netwatch does anyway.
    case connectionProxyDictionary
    case allowsCellularAccess
    case protocolClasses
    case requestCachePolicy
    case identifier

    // Ignored, whatever the value.
    case networkServiceType
    case isDiscretionary
    case sharedContainerIdentifier
    case shouldUseExtendedBackgroundIdleMode
    case httpShouldUsePipelining
    case urlCredentialStorage
    case urlCache

    /// Returns why the configuration is refused: its first refused property, the reason, and what is accepted. `nil` if
    /// the configuration is accepted.
    static func refusal(of configuration: URLSessionConfiguration) -> String? {
        allCases.lazy.compactMap { property in
            property.refusal(of: configuration).map { "`\(property.rawValue)` \($0)" }
        }.first
    }

    private func refusal(of configuration: URLSessionConfiguration) -> String? {
        switch self {
        case .connectionProxyDictionary:
            configuration.connectionProxyDictionary?.isEmpty ?? true ? nil : "is not supported; leave it nil"
        case .allowsCellularAccess:
            configuration.allowsCellularAccess ? nil : "is not supported; leave it true"
        case .protocolClasses:
            Self.hasOwnClasses(configuration) ? "are not called; leave the default" : nil
        case .requestCachePolicy:
            Self.wantsOnlyCache(configuration) ? "allows only cached responses, but there is no cache" : nil
        case .identifier:
            configuration.identifier == nil
                ? nil
                : "selects a background session, which is not supported; for requests that outlive the process, "
                    + "use `SessionManager.background(queue:)` of the library OfflineQueue"
        case .timeoutIntervalForRequest: Self.refusal(ofTimeout: configuration.timeoutIntervalForRequest)
        case .timeoutIntervalForResource: Self.refusal(ofTimeout: configuration.timeoutIntervalForResource)
        default: nil
        }
    }

    private static func refusal(ofTimeout seconds: TimeInterval) -> String? {
        seconds >= 0 ? nil : "is \(seconds); accepted: a positive number of seconds, or 0 for the default"
    }

    private static func hasOwnClasses(_ configuration: URLSessionConfiguration) -> Bool {
        let standard = (URLSessionConfiguration.default.protocolClasses ?? []).map(ObjectIdentifier.init)
        let own = (configuration.protocolClasses ?? []).map(ObjectIdentifier.init)
        return !Set(own).isSubset(of: standard)
    }

    private static func wantsOnlyCache(_ configuration: URLSessionConfiguration) -> Bool {
        configuration.requestCachePolicy == .returnCacheDataDontLoad
    }
}

extension Duration {
    var inSeconds: Double { self / .seconds(1) }

    /// Converts a number of seconds, such as a `TimeInterval` of Foundation. NaN and values below zero become zero. The
    /// result is at most `Int32.max` seconds.
    init(seconds: Double) {
        let longest = Double(Int32.max)
        self = seconds > 0 ? .seconds(min(seconds, longest)) : .zero
    }
}
