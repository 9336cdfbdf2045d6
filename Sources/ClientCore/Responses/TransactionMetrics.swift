public import Foundation
public import FoundationNetworking

/// The metrics of one transfer, with the names of Foundation's `URLSessionTaskTransactionMetrics`.
///
/// The dates of a step are `nil` if the step did not occur. On a reused connection, for example, there is neither a
/// name lookup nor a connection attempt.
public struct TransactionMetrics: Sendable {
    /// The request as it was sent.
    public var request: URLRequest
    /// The head of the response; `nil` if none arrived.
    public var response: HTTPURLResponse?

    /// The time at which the transfer started.
    public var fetchStartDate: Date?
    /// The time at which the name lookup started.
    public var domainLookupStartDate: Date?
    /// The time at which the name lookup ended.
    public var domainLookupEndDate: Date?
    /// The time at which connecting started.
    public var connectStartDate: Date?
    /// The time at which the connection was established, including TLS.
    public var connectEndDate: Date?
    /// The time at which the TLS handshake started.
    public var secureConnectionStartDate: Date?
    /// The time at which the TLS handshake ended.
    public var secureConnectionEndDate: Date?
    /// The time at which the first byte of the request was sent.
    public var requestStartDate: Date?
    /// The estimated time at which the whole request had been sent. The estimate may be later than the actual time, but
    /// never later than ``responseStartDate``. `nil` if the response began before the request was complete.
    public var requestEndDate: Date?
    /// The time at which the first byte of the response arrived.
    public var responseStartDate: Date?
    /// The time at which the last byte of the response arrived.
    public var responseEndDate: Date?

    /// The ALPN name of the protocol (RFC 7301), for example `http/1.1` or `h2`.
    public var networkProtocolName: String?
    /// Whether the connection was established for an earlier request.
    public var isReusedConnection = false
    /// Whether the connection was to a proxy. Always `false`, because proxies are not supported.
    public var isProxyConnection = false
    /// The local address of the connection, without a port.
    public var localAddress: String?
    /// The local port of the connection.
    public var localPort: Int?
    /// The remote address of the connection, without a port.
    public var remoteAddress: String?
    /// The remote port of the connection.
    public var remotePort: Int?

    /// The number of bytes of the request's head.
    public var countOfRequestHeaderBytesSent: Int64 = 0
    /// The number of bytes of the request's body.
    public var countOfRequestBodyBytesSent: Int64 = 0
    /// The number of bytes of the response's head.
    public var countOfResponseHeaderBytesReceived: Int64 = 0
    /// The number of bytes of the response's body on the wire, before decompression.
    public var countOfResponseBodyBytesReceived: Int64 = 0

    /// Creates metrics with the request only; set the other properties afterwards.
    ///
    /// - Parameters:
    ///   - request: The request as it was sent.
    ///   - response: The head of the response. Default `nil`.
    public init(request: URLRequest, response: HTTPURLResponse? = nil) {
        self.request = request
        self.response = response
    }
}

extension TransactionMetrics: CustomStringConvertible {
    /// The request and its status, the connection, the durations of the steps in seconds, and the bytes. Bytes are
    /// written as head + body. For example:
    ///
    /// `GET http://host/ 200, http/1.1 to 10.0.0.1:80 (reused), lookup 0.002, …, sent 80+0, received 120+5 bytes`
    public var description: String {
        ([exchange, connection] + durations + [bytes]).compactMap(\.self).joined(separator: ", ")
    }

    private var exchange: String {
        let status = response.map { "\($0.statusCode)" } ?? "no response"
        return "\(request.methodAndURL) \(status)"
    }

    private var connection: String? {
        guard let remoteAddress else { return nil }
        let end = remoteAddress.contains(":") ? "[\(remoteAddress)]" : remoteAddress
        let port = remotePort.map { ":\($0)" } ?? ""
        let notes = (isReusedConnection ? " (reused)" : "") + (isProxyConnection ? " (proxy)" : "")
        return "\(networkProtocolName ?? "unknown protocol") to \(end)\(port)\(notes)"
    }

    private var durations: [String?] {
        [
            Self.text("lookup", domainLookupStartDate, domainLookupEndDate),
            Self.text("connect", connectStartDate, connectEndDate),
            Self.text("TLS", secureConnectionStartDate, secureConnectionEndDate),
            Self.text("request", requestStartDate, requestEndDate),
            Self.text("wait", requestEndDate, responseStartDate),
            Self.text("response", responseStartDate, responseEndDate),
        ]
    }

    private static func text(_ name: String, _ start: Date?, _ end: Date?) -> String? {
        guard let start, let end else { return nil }
        return "\(name) \(String(format: "%.3f", end.timeIntervalSince(start)))"
    }

    private var bytes: String {
        "sent \(countOfRequestHeaderBytesSent)+\(countOfRequestBodyBytesSent), received "
            + "\(countOfResponseHeaderBytesReceived)+\(countOfResponseBodyBytesReceived) bytes"
    }
}
