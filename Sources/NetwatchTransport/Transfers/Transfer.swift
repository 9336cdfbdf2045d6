internal import CNetwatchCurl
internal import Glibc
internal import NetwatchEventLoop

/// A running transfer: an easy handle and everything that its callbacks use.
///
/// A transfer is confined to the engine's thread. libcurl has an unretained pointer to it. So the code that adds its
/// handle to a multi handle must retain the transfer until it has removed the handle.
final class Transfer {
    /// The reason why netwatch made libcurl stop. Usually a callback sets it.
    enum Stop {
        case headTooLarge
        case switchedProtocol
        case bodyTooLarge
        case bodyExpands
        case sentTooOften
        case bodyFailed(TransferBodyReader.Fault)
        case resendForbidden
        /// The response is not HTTP. The value shows its first bytes, escaped.
        case notHTTP(String)
        /// The watchdog shut down the connection, because the server sent this number of bytes without useful data.
        case abortedByWatchdog(UInt64)
    }

    /// The facts that the transfer has revealed about its host.
    struct Milestones: OptionSet {
        let rawValue: Int

        /// A connection is ready, and the request is being sent over it.
        static let connected = Milestones(rawValue: 1)
        /// The response has begun over HTTP/2, whose connections carry many transfers at a time.
        static let multiplexed = Milestones(rawValue: 2)
        /// The response has begun, over any version of HTTP.
        static let responded = Milestones(rawValue: 4)
    }

    let id: TransferID
    let request: TransferRequest
    let url: CurlURL
    let reporter: TransferReporter
    /// A function that schedules a closure for another turn of the loop, so that the closure never runs within a
    /// callback of libcurl. The closure receives the transfer. If it does not return `CURLE_OK`, the transfer ends.
    let later: @Sendable (@escaping @Sendable (Transfer) -> CURLcode) -> Void
    /// The multi handle that runs the transfer. It retains the transfer until the transfer ends.
    unowned let context: any TransferContext

    // The order of these properties matters: the handle must be destroyed before the memory to which it points.
    let easy: EasyHandle
    let headers: StringList
    let resolved: StringList
    let message = MessageBuffer()

    var bodyReader: TransferBodyReader
    var head = HeadParser()
    /// A head that has not been delivered, because libcurl may send the request again. It is final if libcurl does not.
    var pendingHead: TransferHead?
    /// The time at which the response's head was delivered.
    var headDelivered: ContinuousClock.Instant?
    var bodyBytes = 0
    var events = EventBuffer()
    /// Whether the transfer is registered for event delivery at the end of this turn.
    var isRegisteredForDelivery = false
    /// The milestones reached since the last event delivery.
    var milestones: Milestones = []
    var progress: TransferProgress
    var times: TransferTimes
    var stop: Stop?
    var isFinished = false
    /// The evaluator of the last handshake on a connection that was made for this transfer.
    var evaluator: TrustEvaluator?
    /// The connection that was made for the transfer; `nil` after libcurl has taken it over.
    private var connection: TCPSocket?
    /// Whether the transfer has lost its connection, or libcurl requested a connection that was not prepared. The
    /// reasons are:
    ///
    /// - The connection that libcurl was expected to reuse has just closed.
    /// - The server closed a reused connection before the response.
    /// - The packets of the connection were lost; see ``markUnsent()``.
    ///
    /// The transfer can be added again with a new connection if ``mayReconnect`` is `true`.
    private(set) var lacksConnection = false
    /// The number of bytes sent over earlier connections.
    private(set) var earlierBytesSent: Int64 = 0
    /// The error that occurred when the unix socket was created.
    var socketFailure: SystemError?

    var paused: TransferPause
    var isWaitingForSource = false
    var receiveLimiter = ReceiveLimiter()
    var idleTracker = IdleTracker()
    /// Whether the server sent a `GOAWAY` saying that it processed no stream of the connection.
    var isRefusedByGoAway = false
    /// Whether the server has refused the request over HTTP/2 and requires HTTP/1.1 (RFC 9113 §7, `HTTP_1_1_REQUIRED`).
    private var requiresHTTP1 = false
    /// Whether the server refused the request over HTTP/2 when it was last sent, and requires HTTP/1.1. The request may
    /// then be sent once more.
    private var isRefusedOverHTTP2 = false
    /// The number of bytes that the connection had sent before the request; `nil` until the request is sent. Always
    /// `nil` for a unix socket.
    private(set) var requestOffset: UInt64?
    /// Whether the transfer was ended because the response did not begin within ``TransferRequest/responseTimeout``.
    var isResponseLate = false
    /// The number of times that the request was sent, completely or in part. A time does not count if the server
    /// received nothing.
    private(set) var sendCount = 0

    /// Creates a transfer and sets all options of its handle.
    ///
    /// - Parameters:
    ///   - target: The request, with its timeouts reduced by the time that has already passed.
    ///   - paused: The directions that are paused from the start.
    ///   - connection: The connection to use; `nil` to reuse an open one.
    ///   - context: The multi handle that will run the transfer.
    ///   - later: Schedules a closure for another turn of the loop; see ``later``. Must be safe to call on any thread.
    /// - Throws: ``TransferFailure`` if libcurl rejects an option.
    init(
        id: TransferID,
        target: TransferTarget,
        reporter: TransferReporter,
        paused: TransferPause,
        connection: TCPSocket?,
        context: any TransferContext,
        later: @escaping @Sendable (@escaping @Sendable (Transfer) -> CURLcode) -> Void
    ) throws(TransferFailure) {
        guard let easy = EasyHandle() else { throw .refused(CURLE_OUT_OF_MEMORY, "out of memory") }
        self.id = id
        self.reporter = reporter
        self.paused = paused
        self.connection = connection
        self.later = later
        self.context = context
        self.easy = easy
        request = target.request
        url = target.url
        bodyReader = TransferBodyReader(target.request.body)
        progress = TransferProgress(sent: 0, toSend: bodyReader.length, received: 0, toReceive: nil)
        times = TransferTimes(added: reporter.elapsed)
        let acceptEncoding = target.request.acceptEncoding
        headers = target.request.headerList(decodes: acceptEncoding != nil)
        resolved = target.resolveList()
        try self.easy.apply(target.request, acceptEncoding: acceptEncoding)
        if url.isSecure { try self.easy.applyTLS(of: target.request) }
        try self.easy.set(CURLOPT_HTTPHEADER, pointer: headers.rawValue)
        if let entry = resolved.rawValue { try self.easy.set(CURLOPT_RESOLVE, pointer: entry) }
        if connection != nil { try requireNewConnection() }
        try setCallbacks()
    }

    /// Prepares the transfer so that its handle can be added again, with a new connection.
    ///
    /// - Parameters:
    ///   - target: The request, with its timeouts reduced by the time that has already passed.
    ///   - paused: The directions that are paused now.
    func reconnect(
        over connection: TCPSocket,
        target: TransferTarget,
        paused: TransferPause
    ) throws(TransferFailure) {
        self.connection = connection
        self.paused = paused
        lacksConnection = false
        isWaitingForSource = false
        times.addAgain(at: reporter.elapsed)
        try easy.applyTimeouts(of: target.request)
        try requireNewConnection()
        try easy.set(CURLOPT_FORBID_REUSE, 0)
        // libcurl forgets the required version when the handle is added again.
        if requiresHTTP1 { try easy.set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1) }
        // If the request allows connection reuse, the log was not read until now.
        if url.isSecure { try readVerboseLog() }
    }

    /// Makes libcurl use the new connection. Without this option, it might reuse an idle connection and leave the new
    /// connection unused.
    private func requireNewConnection() throws(TransferFailure) {
        try easy.set(CURLOPT_FRESH_CONNECT, 1)
    }

    /// Whether the transfer can be added again with a new connection. It cannot if its request was sent and must not be
    /// sent twice. The getter then records that reason as ``stop``.
    var mayReconnect: Bool {
        guard lacksConnection, stop == nil else { return false }
        if !maySend { stop = .resendForbidden }
        return stop == nil
    }

    /// Records that the server has received nothing over the last connection. The request therefore counts as not sent
    /// there; see ``maximumSendCount``.
    func markUnsent() {
        lacksConnection = true
        earlierBytesSent += currentBytesSent
        if isReady { sendCount -= 1 }
        times.requestWasNotSent()
        requestOffset = nil
    }

    /// Whether the request may be sent now. This is the case if one of the following is true:
    ///
    /// - It is sent for the first time.
    /// - The server has asked for it again: it has responded, or it requires HTTP/1.1.
    /// - The request may arrive twice.
    var maySend: Bool { !isReady || head.hasBegun || request.mayBeResent || isRefusedOverHTTP2 }

    /// Records that the server has refused the request over HTTP/2 and requires HTTP/1.1.
    func requireHTTP1() {
        (requiresHTTP1, isRefusedOverHTTP2) = (true, true)
    }

    /// Records that the request is about to be sent.
    ///
    /// - Parameter offset: The number of bytes that the connection has sent so far; `nil` if it is not a TCP
    ///   connection.
    func willSend(from offset: UInt64?) {
        sendCount += 1
        requestOffset = offset
        isRefusedOverHTTP2 = false
    }

    /// Makes libcurl close the connection when the transfer is removed. Without this option, libcurl keeps an HTTP/2
    /// connection. A connection that other transfers use stays open.
    func closeConnectionAfterUse() {
        try? easy.set(CURLOPT_FORBID_REUSE, 1)
    }

    /// Returns the connection that was made for the transfer, at the first call. Returns `nil` at later calls, and
    /// records that the transfer lacks a connection.
    func takeConnection() -> TCPSocket? {
        defer { connection = nil }
        if connection == nil {
            lacksConnection = true
            earlierBytesSent += currentBytesSent
        }
        return connection
    }

    var hasDeliveredHead: Bool { headDelivered != nil }

    var handle: UnsafeMutableRawPointer { easy.rawValue }

    /// Returns the transfer to which an easy handle belongs.
    static func of(_ handle: UnsafeMutableRawPointer) -> Transfer? {
        netwatch_easy_get_private(handle).map(at)
    }

    /// Returns the transfer to which a callback's context pointer points.
    static func at(_ context: UnsafeMutableRawPointer) -> Transfer {
        Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    }
}
