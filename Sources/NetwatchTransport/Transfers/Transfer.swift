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
        case bodyInflates
        case askedForever
        case unsendable(BodyFeed.Fault)
        case wouldBeSentTwice
        /// The response is not HTTP. The value is the first bytes, escaped.
        case answeredOtherwise(String)
        /// Set by ``TurnWatchdog``, not by a callback: the server sent this number of bytes without useful data.
        case keptBusy(UInt64)
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
    private(set) var caller: TransferCaller
    /// Calls a function with the transfer in another turn of the loop; see ``CurlMulti/changePause(of:_:)``.
    let later: @Sendable (@escaping @Sendable (Transfer) -> CURLcode) -> Void
    /// The multi handle that runs the transfer. It retains the transfer meanwhile.
    unowned let multi: CurlMulti

    // The order of these properties matters: the handle comes before the memory that it points to.
    let easy: EasyHandle
    let headers: StringList
    let resolved: StringList
    let message = MessageBuffer()

    var feed: BodyFeed
    var head = HeadParser()
    /// A head that is final only if the request is not sent again.
    var heldHead: TransferHead?
    /// The time at which the response's head was delivered.
    var headDelivered: ContinuousClock.Instant?
    var bodyBytes = 0
    var news = TransferNews()
    /// Whether the transfer is registered for event delivery at the end of this turn.
    var isInRound = false
    /// The milestones reached since the last event delivery.
    var milestones: Milestones = []
    var progress: TransferProgress
    var marks: TransferMarks
    var stop: Stop?
    var isFinished = false
    /// The trust evaluation of the last handshake on a connection made for this transfer.
    var judge: TrustJudge?
    /// The connection made for the transfer, until libcurl takes it over.
    private var connection: TCPSocket?
    /// Whether the transfer has no connection. Either libcurl asked for one and there was none: the connection that it was
    /// expected to reuse has just closed, or the server closed a reused connection before the response. Or the packets
    /// of the connection were lost. The transfer can be added again with a new connection; see ``mayReconnect``.
    private(set) var isWithoutSocket = false
    /// The number of bytes sent over earlier connections.
    private(set) var bytesSentBefore: Int64 = 0
    /// The error from opening the unix socket.
    var socketFailure: SystemError?

    var paused: TransferPause
    var isWaitingForSource = false
    var inflow = Inflow()
    var idleness = Idleness()
    /// Whether the server sent a `GOAWAY` saying that it processed no stream of the connection.
    var isTurnedAway = false
    /// Whether the server has refused the request over HTTP/2 and requires HTTP/1.1 (RFC 9113 §7, `HTTP_1_1_REQUIRED`).
    private var requiresHTTP1 = false
    /// Whether the last sending was refused for that reason. This permits one more.
    private var isRefusedOverHTTP2 = false
    /// The position of the request among the bytes of its connection; `nil` before its first byte is sent.
    private(set) var requestOffset: UInt64?
    /// Whether the transfer was ended because the response did not begin within ``TransferRequest/responseTimeout``.
    var isAnswerLate = false
    /// The number of times that the request was sent, at least in part, without those that did not arrive.
    private(set) var sendings = 0

    /// - Parameters:
    ///   - target: The request with its timeouts reduced by the elapsed time.
    ///   - paused: The directions that are paused from the start.
    ///   - connection: The connection to use; `nil` to reuse an open one.
    ///   - multi: The multi handle that will run the transfer.
    ///   - later: Calls a function with the transfer in another turn of the loop. Safe to call on any thread.
    /// - Throws: ``TransferFailure`` when libcurl rejects an option.
    init(
        id: TransferID,
        target: TransferTarget,
        caller: TransferCaller,
        paused: TransferPause,
        connection: TCPSocket?,
        multi: CurlMulti,
        later: @escaping @Sendable (@escaping @Sendable (Transfer) -> CURLcode) -> Void
    ) throws(TransferFailure) {
        guard let easy = EasyHandle() else { throw .refused(CURLE_OUT_OF_MEMORY, "out of memory") }
        self.id = id
        self.caller = caller
        self.paused = paused
        self.connection = connection
        self.later = later
        self.multi = multi
        self.easy = easy
        request = target.request
        url = target.url
        feed = BodyFeed(target.request.body)
        progress = TransferProgress(sent: 0, toSend: feed.length, received: 0, toReceive: nil)
        marks = TransferMarks(launched: caller.elapsed)
        let acceptEncoding = target.request.acceptEncoding
        headers = target.request.headerList(decodes: acceptEncoding != nil)
        resolved = target.resolveList()
        try self.easy.apply(target.request, acceptEncoding: acceptEncoding)
        if url.isSecure { try self.easy.applyTLS(of: target.request) }
        try self.easy.set(CURLOPT_HTTPHEADER, pointer: headers.rawValue)
        if let entry = resolved.rawValue { try self.easy.set(CURLOPT_RESOLVE, pointer: entry) }
        if connection != nil { try takeNoOther() }
        try setCallbacks()
    }

    /// Prepares the transfer for being added again with a new connection.
    ///
    /// - Parameters:
    ///   - target: The request with its timeouts reduced by the elapsed time.
    ///   - caller: The caller, with the times of the lookup and the connection.
    ///   - paused: The directions that are paused now.
    func reconnect(
        over connection: TCPSocket,
        target: TransferTarget,
        caller: TransferCaller,
        paused: TransferPause
    ) throws(TransferFailure) {
        self.connection = connection
        self.caller = caller
        self.paused = paused
        isWithoutSocket = false
        isWaitingForSource = false
        marks.launch(at: caller.elapsed)
        try easy.applyTimeouts(of: target.request)
        try takeNoOther()
        try easy.set(CURLOPT_FORBID_REUSE, 0)
        // libcurl forgets it when the handle is added again. The log of the first sending was not read if reuse was allowed.
        if requiresHTTP1 { try easy.set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1) }
        if url.isSecure { try readLog() }
    }

    /// Makes libcurl use the new connection. Otherwise it would reuse an idle one, and the new connection would be
    /// wasted.
    private func takeNoOther() throws(TransferFailure) {
        try easy.set(CURLOPT_FRESH_CONNECT, 1)
    }

    /// Whether the transfer can be added again with a new connection. It cannot if its request was sent and must not be
    /// sent twice.
    var mayReconnect: Bool {
        guard isWithoutSocket, stop == nil else { return false }
        if !mayBegin { stop = .wouldBeSentTwice }
        return stop == nil
    }

    /// Notes that nothing of what was sent over the last connection has arrived. This sending does not count among those
    /// that the server asks for.
    func isUnsent() {
        isWithoutSocket = true
        bytesSentBefore += bytesSentNow
        if isReady { sendings -= 1 }
        marks.requestIsUnsent()
        requestOffset = nil
    }

    /// Whether the request may be sent: for the first time, after the server has asked for it again, or again although it
    /// may have arrived.
    var mayBegin: Bool { !isReady || head.hasBegun || request.mayBeResent || isRefusedOverHTTP2 }

    /// Records that the server has refused the request over HTTP/2 and requires HTTP/1.1.
    func isSentBack() {
        (requiresHTTP1, isRefusedOverHTTP2) = (true, true)
    }

    /// Records that the request is about to be sent.
    ///
    /// - Parameter offset: The number of bytes that the connection has sent before; `nil` if it is not TCP.
    func isSending(from offset: UInt64?) {
        sendings += 1
        requestOffset = offset
        isRefusedOverHTTP2 = false
    }

    /// Makes libcurl close the connection when the transfer is removed, unless other transfers use it. Otherwise it
    /// keeps one that speaks HTTP/2.
    func closesConnection() {
        try? easy.set(CURLOPT_FORBID_REUSE, 1)
    }

    /// Returns the connection for libcurl once, then `nil`.
    func takeConnection() -> TCPSocket? {
        defer { connection = nil }
        if connection == nil {
            isWithoutSocket = true
            bytesSentBefore += bytesSentNow
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

/// Owns the buffer for `CURLOPT_ERRORBUFFER`.
struct MessageBuffer: ~Copyable {
    let rawValue = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

    init() { rawValue.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE)) }

    deinit { rawValue.deallocate() }

    var text: String? {
        rawValue.pointee == 0 ? nil : String(cString: rawValue)
    }
}
