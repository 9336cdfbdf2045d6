public import Foundation
public import FoundationNetworking

/// What Foundation's `URLSessionTaskTransactionMetrics` tells elsewhere, with its names: one request that
/// was sent, and its response.
///
/// A step that was not taken has no dates: a reused connection has none for the name and the connection.
public struct TransactionMetrics: Sendable {
    /// The request as it was sent.
    public var request: URLRequest
    /// The head of the response; `nil` when none came.
    public var response: HTTPURLResponse?

    /// When the request was begun.
    public var fetchStartDate: Date?
    /// When the search for the host's address began.
    public var domainLookupStartDate: Date?
    /// When the host's address was known.
    public var domainLookupEndDate: Date?
    /// When connecting began.
    public var connectStartDate: Date?
    /// When the connection was there, TLS included.
    public var connectEndDate: Date?
    /// When TLS began.
    public var secureConnectionStartDate: Date?
    /// When TLS was agreed on.
    public var secureConnectionEndDate: Date?
    /// When the first byte of the request was sent.
    public var requestStartDate: Date?
    /// When the last byte of the request was sent.
    public var requestEndDate: Date?
    /// When the first byte of the response came.
    public var responseStartDate: Date?
    /// When the last byte of the response came.
    public var responseEndDate: Date?

    /// The protocol by its ALPN name (RFC 7301): `http/1.1`, `h2`.
    public var networkProtocolName: String?
    /// Whether the connection had been made for an earlier request.
    public var isReusedConnection = false
    /// Whether the connection led to a proxy.
    public var isProxyConnection = false
    /// The address of the connection's near end, without a port.
    public var localAddress: String?
    /// The port of the connection's near end.
    public var localPort: Int?
    /// The address of the connection's far end, without a port.
    public var remoteAddress: String?
    /// The port of the connection's far end.
    public var remotePort: Int?

    /// Bytes of the request's head.
    public var countOfRequestHeaderBytesSent: Int64 = 0
    /// Bytes of the request's body.
    public var countOfRequestBodyBytesSent: Int64 = 0
    /// Bytes of the response's head.
    public var countOfResponseHeaderBytesReceived: Int64 = 0
    /// Bytes of the response's body on the wire, before anything was decompressed.
    public var countOfResponseBodyBytesReceived: Int64 = 0

    /// Makes metrics that know the request only; set what else is known.
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
    /// `GET http://host/ 200, http/1.1 to 10.0.0.1:80 (reused), lookup 0.002, …, sent 80+0, received 120+5
    /// bytes`: durations in seconds, bytes as head and body.
    public var description: String {
        ([exchange, connection] + durations + [bytes]).compactMap(\.self).joined(separator: ", ")
    }

    private var exchange: String {
        let status = response.map { "\($0.statusCode)" } ?? "no response"
        return "\(request.nameInTexts) \(status)"
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
