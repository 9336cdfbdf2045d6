public import Foundation
public import FoundationNetworking
internal import NetwatchTransport

/// Options for how a request is sent. An option that is `nil` falls back to the session's
/// ``SessionManager/requestOptions``, and then to the session's configuration or to netwatch's default.
public struct RequestOptions: Sendable, Hashable {
    /// The time limit for the name lookup, the connection and the TLS handshake of a transfer together, in
    /// seconds. Default: 15.
    public var connectTimeout: TimeInterval?
    /// The maximum time in seconds without a byte in either direction once connected. Exceeding it is detected
    /// up to two seconds late. Default: the configuration's `timeoutIntervalForRequest`, 60.
    ///
    /// A `URLRequest` whose `timeoutInterval` is not 60 overrides the session's option, but not this option of
    /// the request.
    public var idleTimeout: TimeInterval?
    /// The time limit of an attempt in seconds. It includes waiting for other requests, redirects, and the last
    /// byte. Default: the configuration's `timeoutIntervalForResource`, seven days.
    public var totalTimeout: TimeInterval?
    /// The priority among requests that wait for the same host, from 0 (last) to 1 (first). Over HTTP/2 also
    /// the request's share of the connection (`CURLOPT_STREAM_WEIGHT`), if the server supports it. Default:
    /// 0.5.
    public var priority: Float?
    /// The maximum number of bytes of a decoded response kept in memory. A longer response ends the request
    /// with `URLError.dataLengthExceedsMaximum`. Downloads and data streamed to a closure are not limited.
    /// Default: 16 MiB.
    public var maximumDataBytes: Int?

    /// Creates options. Every option that is `nil` falls back to the session.
    public init(
        connectTimeout: TimeInterval? = nil,
        idleTimeout: TimeInterval? = nil,
        totalTimeout: TimeInterval? = nil,
        priority: Float? = nil,
        maximumDataBytes: Int? = nil
    ) {
        self.connectTimeout = connectTimeout
        self.idleTimeout = idleTimeout
        self.totalTimeout = totalTimeout
        self.priority = priority
        self.maximumDataBytes = maximumDataBytes
    }
}

extension RequestOptions {
    /// Limits the memory that any server can use. Most programs never receive more than this in memory: they
    /// download longer responses to files.
    static let defaultMaximumDataBytes = 16 * 1024 * 1024

    /// Returns these options, with missing ones taken from `others`.
    func over(_ others: RequestOptions) -> RequestOptions {
        RequestOptions(
            connectTimeout: connectTimeout ?? others.connectTimeout,
            idleTimeout: idleTimeout ?? others.idleTimeout,
            totalTimeout: totalTimeout ?? others.totalTimeout,
            priority: priority ?? others.priority,
            maximumDataBytes: maximumDataBytes ?? others.maximumDataBytes
        )
    }

    var totalTimeoutDuration: Duration? { totalTimeout.map { Duration(seconds: $0) } }

    /// - Throws: ``AFError/URLRequestValidationFailureReason/invalidOption(name:value:accepted:)``.
    func check() throws {
        let seconds = "seconds above 0"
        let timeouts = [
            ("connectTimeout", connectTimeout), ("idleTimeout", idleTimeout), ("totalTimeout", totalTimeout),
        ]
        for (name, value) in timeouts {
            // A NaN fails this comparison, too.
            if let value, !(value > 0) { throw AFError.invalidOption(name, "\(value)", accepted: seconds) }
        }
        if let priority, !(0...1).contains(priority) {
            throw AFError.invalidOption("priority", "\(priority)", accepted: "0 to 1")
        }
        if let maximumDataBytes, maximumDataBytes < 0 {
            throw AFError.invalidOption("maximumDataBytes", "\(maximumDataBytes)", accepted: "0 or more")
        }
    }
}

extension TransferRequest {
    /// Applies the options that map directly to a transfer.
    mutating func apply(_ options: RequestOptions) {
        if let timeout = options.connectTimeout { connectTimeout = Duration(seconds: timeout) }
        if let priority = options.priority { self.priority = priority }
    }
}

/// A request with its options, for all functions of a session that accept a ``URLRequestConvertible``.
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
