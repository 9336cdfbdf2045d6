public import Foundation
public import FoundationNetworking
internal import NetwatchTransport

/// Options for how a request is sent.
///
/// If an option of a request is `nil`, the request uses the option of the session
/// (``SessionManager/requestOptions``). If that is `nil`, too, the request uses the session's configuration or
/// netwatch's default.
///
/// ```swift
/// session.requestOptions = RequestOptions(connectTimeout: 5, totalTimeout: 60)
/// // This request has the same connect timeout, but another total timeout.
/// session.request(urlRequest.with(RequestOptions(totalTimeout: 300))).response { print($0.error ?? "done") }
/// ```
public struct RequestOptions: Sendable, Hashable {
    /// The time limit for the name lookup, the connection and the TLS handshake of a transfer together, in
    /// seconds. Default: 15.
    public var connectTimeout: TimeInterval?
    /// The maximum time in seconds during which an established connection neither sends nor receives a byte. The
    /// transfer may fail up to two seconds later.
    ///
    /// The first of these that is set applies:
    ///
    /// 1. this option of the request
    /// 2. the `timeoutInterval` of the `URLRequest`, unless it is 60, which is Foundation's default
    /// 3. this option of the session
    /// 4. the configuration's `timeoutIntervalForRequest`, by default 60
    public var idleTimeout: TimeInterval?
    /// The time limit of an attempt in seconds, from its start to the last byte of the response. It includes
    /// redirects, and the time during which the attempt waits for other requests. Default: the configuration's
    /// `timeoutIntervalForResource`, by default seven days.
    public var totalTimeout: TimeInterval?
    /// The priority among requests that wait for the same host, from 0 (last) to 1 (first). Default: 0.5.
    ///
    /// Over HTTP/2, the priority also sets the request's share of the connection (`CURLOPT_STREAM_WEIGHT`), if the
    /// server supports that.
    public var priority: Float?
    /// The maximum size of a response body in memory, in bytes after decoding. A request with a longer response
    /// fails with `URLError.dataLengthExceedsMaximum`. Default: 16 MiB.
    ///
    /// Responses streamed to a closure are not limited, nor are files of downloads. But if the program sets this
    /// option, handlers that read the whole file of a download, such as `responseData`, receive the error instead of
    /// reading a longer file.
    public var maximumDataBytes: Int?
    /// The version of HTTP. Default: ``HTTPVersion/http2``. Requests over plain http always use HTTP/1.1.
    ///
    /// Requests with ``HTTPVersion/http1`` have their own limit on the number of connections to a host. A queue that takes
    /// over the request keeps the version. A resumed download uses the session's version.
    public var httpVersion: HTTPVersion?
    /// What redirects may do in addition to the following rules. Default: nothing.
    ///
    /// - A redirect from https to http fails with ``AFError/redirectRefused(reason:)``.
    /// - A redirect with the status 307 or 308 that would send the body to another origin fails with the same error.
    /// - After a redirect to another origin, only the fields `Accept`, `Accept-Encoding`, `Accept-Language` and
    ///   `User-Agent` of the session are sent. The request's own fields are sent, except the fields with credentials
    ///   that <doc:Authentication> lists.
    public var redirects: RedirectOptions?
    /// The oldest version of TLS that is accepted, whatever OpenSSL's configuration says. A server without such a
    /// version is refused with `URLError.secureConnectionFailed`. Default: ``TLSVersion/tls12``, or the minimum version
    /// of OpenSSL's configuration if that is newer.
    ///
    /// OpenSSL's security level may refuse TLS 1.0 and 1.1 even if this option permits them.
    public var minimumTLSVersion: TLSVersion?
    /// Whether NTLM and Negotiate may answer a challenge over plain http, where an attacker can relay the answer to
    /// another server. Default: false.
    public var allowsNTLMAndNegotiateOverHTTP: Bool?

    /// Creates options. The session's value applies to each option that is `nil`.
    public init(
        connectTimeout: TimeInterval? = nil,
        idleTimeout: TimeInterval? = nil,
        totalTimeout: TimeInterval? = nil,
        priority: Float? = nil,
        maximumDataBytes: Int? = nil,
        httpVersion: HTTPVersion? = nil,
        redirects: RedirectOptions? = nil,
        minimumTLSVersion: TLSVersion? = nil,
        allowsNTLMAndNegotiateOverHTTP: Bool? = nil
    ) {
        self.connectTimeout = connectTimeout
        self.idleTimeout = idleTimeout
        self.totalTimeout = totalTimeout
        self.priority = priority
        self.maximumDataBytes = maximumDataBytes
        self.httpVersion = httpVersion
        self.redirects = redirects
        self.minimumTLSVersion = minimumTLSVersion
        self.allowsNTLMAndNegotiateOverHTTP = allowsNTLMAndNegotiateOverHTTP
    }
}

extension RequestOptions {
    /// The default of ``maximumDataBytes``: 16 MiB. It limits how much memory a server can make the client use.
    /// Programs usually download longer responses to files.
    static let defaultMaximumDataBytes = 16 * 1024 * 1024

    /// Returns these options. Those that are `nil` are taken from `others`.
    func over(_ others: RequestOptions) -> RequestOptions {
        RequestOptions(
            connectTimeout: connectTimeout ?? others.connectTimeout,
            idleTimeout: idleTimeout ?? others.idleTimeout,
            totalTimeout: totalTimeout ?? others.totalTimeout,
            priority: priority ?? others.priority,
            maximumDataBytes: maximumDataBytes ?? others.maximumDataBytes,
            httpVersion: httpVersion ?? others.httpVersion,
            redirects: redirects ?? others.redirects,
            minimumTLSVersion: minimumTLSVersion ?? others.minimumTLSVersion,
            allowsNTLMAndNegotiateOverHTTP: allowsNTLMAndNegotiateOverHTTP
                ?? others.allowsNTLMAndNegotiateOverHTTP
        )
    }

    var totalTimeoutDuration: Duration? { totalTimeout.map { Duration(seconds: $0) } }

    /// Throws an error if an option is out of range.
    ///
    /// - Throws: ``AFError/URLRequestValidationFailureReason/invalidOption(name:value:accepted:)``.
    func check() throws {
        try Self.check(connectTimeout, "connectTimeout")
        try Self.check(idleTimeout, "idleTimeout")
        try Self.check(totalTimeout, "totalTimeout")
        if let priority, !(0...1).contains(priority) {
            throw AFError.invalidOption("priority", "\(priority)", accepted: "0 to 1")
        }
        if let maximumDataBytes, maximumDataBytes < 0 {
            throw AFError.invalidOption("maximumDataBytes", "\(maximumDataBytes)", accepted: "0 or more")
        }
    }

    private static func check(_ timeout: TimeInterval?, _ name: String) throws {
        // Comparing NaN is always false, so NaN is refused as well.
        guard let timeout, !(timeout > 0) else { return }
        throw AFError.invalidOption(name, "\(timeout)", accepted: "more than 0 seconds")
    }
}

extension TransferRequest {
    /// Sets the options that the engine handles itself: the connect timeout, the priority and the version of HTTP.
    mutating func apply(_ options: RequestOptions) {
        if let timeout = options.connectTimeout { connectTimeout = Duration(seconds: timeout) }
        if let priority = options.priority { self.priority = priority }
        usesHTTP1 = options.httpVersion == .http1
    }
}

/// A request with its options. All functions of a session that accept a ``URLRequestConvertible`` accept it.
public struct OptionedRequest: URLRequestConvertible {
    let request: any URLRequestConvertible
    let options: RequestOptions

    /// Returns the request without its options.
    public func asURLRequest() throws -> URLRequest { try request.asURLRequest() }
}

extension URLRequestConvertible {
    /// Returns the request with the given options. If several calls set the same option, the last call wins.
    ///
    ///     session.request(Router.search("socks").with(RequestOptions(connectTimeout: 2, totalTimeout: 10)))
    public func with(_ options: RequestOptions) -> OptionedRequest {
        let inner = self as? OptionedRequest
        return OptionedRequest(
            request: inner?.request ?? self,
            options: options.over(inner?.options ?? RequestOptions())
        )
    }
}

/// What redirects may do that is not permitted by default; see ``RequestOptions/redirects``.
public struct RedirectOptions: OptionSet, Sendable, Hashable {
    /// The options as bits.
    public let rawValue: Int

    /// Creates options from bits.
    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// A redirect from https to http is followed. Everything that is sent there, and the response, can be read and
    /// changed by any device on the network path.
    ///
    /// Even with this option, a redirect is refused if the redirecting host has a ``ServerTrustPolicy`` other than
    /// `disableEvaluation`.
    public static let insecure = RedirectOptions(rawValue: 1 << 0)

    /// After a redirect to another origin, the header fields of the session are sent to this origin. After the statuses
    /// 307 and 308, the body is sent, too. An origin is a scheme, a host and a port.
    ///
    /// The fields with credentials that <doc:Authentication> lists are not sent. The request's other own fields are
    /// sent even without this option.
    public static let crossOriginData = RedirectOptions(rawValue: 1 << 1)
}

/// The versions of HTTP that a request over TLS can ask for; see ``RequestOptions/httpVersion``.
public enum HTTPVersion: String, Sendable, Hashable, CaseIterable {
    /// HTTP/1.1, even if the server offers HTTP/2.
    case http1 = "1.1"
    /// HTTP/2 if the server offers it, otherwise HTTP/1.1. This is how requests are sent by default. If HTTP/2 has
    /// failed at the server within the last day, HTTP/1.1 is used; see <doc:Connecting>.
    case http2 = "2"
}

/// The versions of TLS; see ``RequestOptions/minimumTLSVersion``.
public enum TLSVersion: Int, Sendable, Hashable, Comparable {
    /// TLS 1.0 (RFC 2246), which RFC 8996 deprecates.
    case tls10
    /// TLS 1.1 (RFC 4346), which RFC 8996 deprecates.
    case tls11
    /// TLS 1.2 (RFC 5246).
    case tls12
    /// TLS 1.3 (RFC 8446).
    case tls13

    /// Returns whether the first version is older.
    public static func < (one: TLSVersion, other: TLSVersion) -> Bool { one.rawValue < other.rawValue }

    var transfer: TransferTrust.TLSVersion {
        switch self {
        case .tls10: .tls10
        case .tls11: .tls11
        case .tls12: .tls12
        case .tls13: .tls13
        }
    }
}
