public import Foundation
public import FoundationNetworking
internal import NetwatchTransport

/// How a request is carried out, beyond what it says to the server. What is `nil` is left to the session's
/// ``SessionManager/requestOptions``, and what is `nil` there too to the session's configuration or to netwatch.
public struct RequestOptions: Sendable, Hashable {
    /// How many seconds the name lookup, the connection and the TLS handshake of a transfer may take together.
    /// netwatch's own: 15.
    public var connectTimeout: TimeInterval?
    /// How many seconds no byte may go either way once connected; noticed up to two seconds late. The
    /// configuration's `timeoutIntervalForRequest`: 60. The `timeoutInterval` of a `URLRequest` that is not 60
    /// comes between this and the session's.
    public var idleTimeout: TimeInterval?
    /// How many seconds an attempt may take with everything: waiting for other requests, redirects, the last byte.
    /// The configuration's `timeoutIntervalForResource`: seven days.
    public var totalTimeout: TimeInterval?
    /// How soon the request is begun when others to its host wait too, from 0 (last) to 1 (first); over HTTP/2 also
    /// its share of the connection (`CURLOPT_STREAM_WEIGHT`), if the server looks at it. netwatch's own: 0.5.
    public var priority: Float?
    /// How many bytes of a response are kept in memory, decoded; a longer one ends the request with
    /// `URLError.dataLengthExceedsMaximum`. Downloads, and data that a closure takes as it comes, are not kept.
    /// netwatch's own: 16 MiB.
    public var maximumDataBytes: Int?

    /// Makes options that leave everything to the session.
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
    /// What anybody may send us unasked, and what most programs never get: they download what is longer.
    static let defaultMaximumDataBytes = 16 * 1024 * 1024

    /// These, and what others say where these say nothing.
    func over(_ others: RequestOptions) -> RequestOptions {
        RequestOptions(
            connectTimeout: connectTimeout ?? others.connectTimeout,
            idleTimeout: idleTimeout ?? others.idleTimeout,
            totalTimeout: totalTimeout ?? others.totalTimeout,
            priority: priority ?? others.priority,
            maximumDataBytes: maximumDataBytes ?? others.maximumDataBytes
        )
    }

    var longest: Duration? { totalTimeout.map { Duration(seconds: $0) } }

    /// - Throws: ``AFError/URLRequestValidationFailureReason/invalidOption(name:value:accepted:)``.
    func check() throws {
        let seconds = "seconds above 0"
        let timeouts = [
            ("connectTimeout", connectTimeout), ("idleTimeout", idleTimeout), ("totalTimeout", totalTimeout),
        ]
        for (name, value) in timeouts {
            // What is not a number is not above anything.
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

extension AFError {
    static func invalidOption(_ name: String, _ value: String, accepted: String) -> AFError {
        .urlRequestValidationFailed(reason: .invalidOption(name: name, value: value, accepted: accepted))
    }
}

extension TransferRequest {
    /// Takes the options that are a transfer's and depend on nothing else.
    mutating func apply(_ options: RequestOptions) {
        if let timeout = options.connectTimeout { connectTimeout = Duration(seconds: timeout) }
        if let priority = options.priority { self.priority = priority }
    }
}

/// A request together with how it is carried out, for all functions of a session that take a
/// ``URLRequestConvertible``.
public struct OptionedRequest: URLRequestConvertible {
    let request: any URLRequestConvertible
    let options: RequestOptions

    /// The request without its options.
    public func asURLRequest() throws -> URLRequest { try request.asURLRequest() }
}

extension URLRequestConvertible {
    /// Says how the request is carried out. Said twice, the last word counts, option by option.
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
