public import Foundation
public import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTransport

/// The metrics of an attempt, which are computed on first access.
typealias LazyMetrics = LazyValue<RequestMetrics.Source, RequestMetrics?>

/// The metrics of a request, with the names of Foundation's `URLSessionTaskMetrics`.
public struct RequestMetrics: Sendable {
    /// The interval from the start to the end of the last attempt.
    public let taskInterval: DateInterval
    /// The number of redirects that were followed.
    public let redirectCount: Int
    /// The transfers of the last attempt, in order. After the first transfer, there is another one for each redirect
    /// that was followed, for each range of a resumed download that the server rejected, and for each answered
    /// challenge to a transfer without credentials. If a transfer has credentials from its start, libcurl itself
    /// answers challenges, and the transfer contains all requests that libcurl sends.
    public let transactionMetrics: [TransactionMetrics]

    /// Creates metrics.
    ///
    /// - Parameters:
    ///   - taskInterval: The interval from the start to the end of the last attempt.
    ///   - redirectCount: The number of redirects that were followed. Default 0.
    ///   - transactionMetrics: The transfers of the last attempt, in order. Default none.
    public init(
        taskInterval: DateInterval,
        redirectCount: Int = 0,
        transactionMetrics: [TransactionMetrics] = []
    ) {
        self.taskInterval = taskInterval
        self.redirectCount = redirectCount
        self.transactionMetrics = transactionMetrics
    }
}

extension RequestMetrics {
    /// What the metrics of an attempt are computed from: its transfers, the number of redirects that were followed, and
    /// the clock that converts monotonic times to dates.
    typealias Source = (transactions: [Transaction], redirects: Int, clock: RequestClock)

    /// Returns `nil` if there are no transactions, or if their times cannot be converted to dates.
    ///
    /// - Parameter clock: Converts the monotonic times to dates.
    init?(_ transactions: [Transaction], redirects: Int, clock: RequestClock) {
        let all = transactions.map { TransactionMetrics($0, clock: clock) }
        guard let first = all.first?.fetchStartDate else { return nil }
        let end = max(first, all.last?.responseEndDate ?? first)
        self.init(
            taskInterval: DateInterval(start: first, end: end),
            redirectCount: redirects,
            transactionMetrics: all
        )
    }
}

extension RequestMetrics: CustomStringConvertible {
    /// The duration and the number of redirects, for example `0.120 secs, 1 redirect`, and a line for each transfer.
    public var description: String {
        let redirects = "\(redirectCount) redirect\(redirectCount == 1 ? "" : "s")"
        let first = "\(String(format: "%.3f", taskInterval.duration)) secs, \(redirects)"
        return ([first] + transactionMetrics.map { "  \($0)" }).joined(separator: "\n")
    }
}

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

/// A finished transfer of a request.
struct Transaction: Sendable {
    let metrics: TransferMetrics
    /// The request as it was sent.
    let request: URLRequest
    let head: ResponseHead?
}

extension TransactionMetrics {
    /// - Parameter clock: Converts the transfer's monotonic times to dates.
    init(_ transaction: Transaction, clock: RequestClock) {
        self.init(request: transaction.request, response: transaction.head?.response)
        let transfer = transaction.metrics
        let date = { (elapsed: Duration?) in elapsed.flatMap { clock.date(of: transfer.startedAt + $0) } }
        fetchStartDate = date(.zero)
        if transfer.lookupEnded != nil { domainLookupStartDate = fetchStartDate }
        domainLookupEndDate = date(transfer.lookupEnded)
        connectStartDate = transfer.connected.flatMap { _ in date(transfer.lookupEnded ?? .zero) }
        secureConnectionStartDate = transfer.tlsEnded.flatMap { _ in date(transfer.connected) }
        secureConnectionEndDate = date(transfer.tlsEnded)
        connectEndDate = secureConnectionEndDate ?? date(transfer.connected)
        requestStartDate = date(transfer.requestReady)
        requestEndDate = date(transfer.requestSent)
        responseStartDate = date(transfer.firstByte)
        responseEndDate = transfer.firstByte.flatMap { _ in date(transfer.ended) }
        networkProtocolName = transfer.httpVersion
        isReusedConnection = transfer.reusedConnection
        localAddress = transfer.localAddress
        localPort = transfer.localPort
        remoteAddress = transfer.remoteAddress
        remotePort = transfer.remotePort
        countOfRequestHeaderBytesSent = transfer.requestHeaderBytes
        countOfRequestBodyBytesSent = transfer.requestBodyBytes
        countOfResponseHeaderBytesReceived = transfer.responseHeaderBytes
        countOfResponseBodyBytesReceived = transfer.responseBodyBytes
    }
}
