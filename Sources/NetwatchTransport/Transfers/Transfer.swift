internal import CNetwatchCurl
internal import Glibc
internal import NetwatchEventLoop

/// A running transfer: an easy handle and everything that its callbacks use.
///
/// It is confined to the engine's thread. libcurl holds an unretained pointer to it, so the code that adds its handle
/// to a multi handle must retain the transfer until the handle is removed.
final class Transfer {
    /// Why netwatch made libcurl stop, usually from a callback.
    enum Stop {
        case headTooLarge
        case switchedProtocol
        case bodyTooLarge
        case bodyExpands
        case sentTooOften
        case bodyFailed(TransferBodyReader.Fault)
        case resendForbidden
        /// The response is not HTTP. The value is the first bytes, escaped.
        case notHTTP(String)
        /// Set by the watchdog, not by a callback: the server sent this number of bytes without useful data.
        case abortedByWatchdog(UInt64)
    }

    /// What the transfer has revealed about the host so far.
    struct Milestones: OptionSet {
        let rawValue: Int

        /// There is a connection, and the request is sent over it.
        static let connected = Milestones(rawValue: 1)
        /// The response has begun over a connection that carries many transfers at a time.
        static let multiplexed = Milestones(rawValue: 2)
        /// The response has begun.
        static let answered = Milestones(rawValue: 4)
    }

    let id: TransferID
    let request: TransferRequest
    let url: CurlURL
    let reporter: TransferReporter
    /// Calls a function with the transfer in another turn of the loop; never in a callback of libcurl.
    let later: @Sendable (@escaping @Sendable (Transfer) -> CURLcode) -> Void
    /// The multi handle that runs the transfer. It retains the transfer meanwhile.
    unowned let context: any TransferContext

    // The order of these properties matters: the handle comes before the memory that it points to.
    let easy: EasyHandle
    let headers: StringList
    let resolved: StringList
    let message = MessageBuffer()

    var bodyReader: TransferBodyReader
    var head = HeadParser()
    /// A head that is final only if the request is not sent again.
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
    /// The trust evaluation of the last handshake on a connection made for this transfer.
    var evaluator: TrustEvaluator?
    /// The connection made for the transfer, until libcurl takes it over.
    private var connection: TCPSocket?
    /// Whether the transfer has no connection. Either libcurl asked for one and there was none: the connection that it
    /// was expected to reuse has just closed, or the server closed a reused connection before the response. Or the
    /// packets of the connection were lost. The transfer can be added again with a new connection; see
    /// ``mayReconnect``.
    private(set) var lacksConnection = false
    /// The number of bytes sent over earlier connections.
    private(set) var earlierBytesSent: Int64 = 0
    /// The error from opening the unix socket.
    var socketFailure: SystemError?

    var paused: TransferPause
    var isWaitingForSource = false
    var receiveLimiter = ReceiveLimiter()
    var idleTracker = IdleTracker()
    /// Whether the server sent a `GOAWAY` saying that it processed no stream of the connection.
    var isRefusedByGoAway = false
    /// Whether the server has refused the request over HTTP/2 and requires HTTP/1.1 (RFC 9113 §7, `HTTP_1_1_REQUIRED`).
    private var requiresHTTP1 = false
    /// Whether the last sending was refused for that reason. This permits one more.
    private var isRefusedOverHTTP2 = false
    /// The position of the request among the bytes of its connection; `nil` before its first byte is sent.
    private(set) var requestOffset: UInt64?
    /// Whether the transfer was ended because the response did not begin within ``TransferRequest/responseTimeout``.
    var isAnswerLate = false
    /// The number of times that the request was sent, at least in part, without those that did not arrive.
    private(set) var sendCount = 0

    /// - Parameters:
    ///   - target: The request with its timeouts reduced by the elapsed time.
    ///   - paused: The directions that are paused from the start.
    ///   - connection: The connection to use; `nil` to reuse an open one.
    ///   - context: The multi handle that will run the transfer.
    ///   - later: Calls a function with the transfer in another turn of the loop. Safe to call on any thread.
    /// - Throws: ``TransferFailure`` when libcurl rejects an option.
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

    /// Prepares the transfer for being added again with a new connection.
    ///
    /// - Parameters:
    ///   - target: The request with its timeouts reduced by the elapsed time.
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
        // libcurl forgets it when the handle is added again. The log of the first sending was not read if reuse was
        // allowed.
        if requiresHTTP1 { try easy.set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1) }
        if url.isSecure { try readVerboseLog() }
    }

    /// Makes libcurl use the new connection. Otherwise it would reuse an idle one, and the new connection would be
    /// wasted.
    private func requireNewConnection() throws(TransferFailure) {
        try easy.set(CURLOPT_FRESH_CONNECT, 1)
    }

    /// Whether the transfer can be added again with a new connection. It cannot if its request was sent and must not be
    /// sent twice.
    var mayReconnect: Bool {
        guard lacksConnection, stop == nil else { return false }
        if !maySend { stop = .resendForbidden }
        return stop == nil
    }

    /// Notes that nothing of what was sent over the last connection has arrived. This sending does not count among
    /// those that the server asks for.
    func markUnsent() {
        lacksConnection = true
        earlierBytesSent += currentBytesSent
        if isReady { sendCount -= 1 }
        times.requestWasNotSent()
        requestOffset = nil
    }

    /// Whether the request may be sent: for the first time, after the server has asked for it again, or again although
    /// it may have arrived.
    var maySend: Bool { !isReady || head.hasBegun || request.mayBeResent || isRefusedOverHTTP2 }

    /// Records that the server has refused the request over HTTP/2 and requires HTTP/1.1.
    func requireHTTP1() {
        (requiresHTTP1, isRefusedOverHTTP2) = (true, true)
    }

    /// Records that the request is about to be sent.
    ///
    /// - Parameter offset: The number of bytes that the connection has sent before; `nil` if it is not TCP.
    func willSend(from offset: UInt64?) {
        sendCount += 1
        requestOffset = offset
        isRefusedOverHTTP2 = false
    }

    /// Makes libcurl close the connection when the transfer is removed, unless other transfers use it. Otherwise it
    /// keeps one that speaks HTTP/2.
    func closeConnectionAfterUse() {
        try? easy.set(CURLOPT_FORBID_REUSE, 1)
    }

    /// Returns the connection for libcurl once, then `nil`.
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

    /// Returns the transfer of an easy handle.
    static func of(_ handle: UnsafeMutableRawPointer) -> Transfer? {
        netwatch_easy_get_private(handle).map(at)
    }

    /// Returns the transfer of a callback's context pointer.
    static func at(_ context: UnsafeMutableRawPointer) -> Transfer {
        Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    }
}
