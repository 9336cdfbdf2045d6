internal import CNetwatchCurl
internal import Glibc
internal import NetwatchEventLoop

/// One transfer under way: an easy handle with everything its callbacks touch.
///
/// Lives on the engine's thread. libcurl holds an unretained pointer to it, so whoever adds its handle to a
/// multi handle keeps the transfer until the handle was removed again.
final class Transfer {
    /// Why we told libcurl to stop, mostly in a callback.
    enum Stop {
        case headTooLarge
        case switchedProtocol
        case bodyTooLarge
        case bodyInflates
        case askedForever
        case unsendable(BodyFeed.Fault)
        case wouldBeSentTwice
        /// The answer is not HTTP. The first of its bytes, escaped.
        case answeredOtherwise(String)
        /// Not a callback's doing, but that of ``TurnWatchdog``: the server has sent so many bytes in vain.
        case keptBusy(UInt64)
    }

    /// What is learnt of the host while the transfer goes on.
    struct Milestones: OptionSet {
        let rawValue: Int

        /// There is a connection, and the request goes over it.
        static let connected = Milestones(rawValue: 1)
        /// The response has begun, over a connection that carries many at a time.
        static let multiplexed = Milestones(rawValue: 2)
        /// The response has begun.
        static let answered = Milestones(rawValue: 4)
    }

    let id: TransferID
    let request: TransferRequest
    let url: CurlURL
    private(set) var caller: TransferCaller
    /// Changes it in another turn of the loop; see ``CurlMulti/changePause(of:_:)``.
    let later: @Sendable (@escaping @Sendable (Transfer) -> CURLcode) -> Void
    /// Who drives it, and keeps it while it does.
    unowned let multi: CurlMulti

    // Fields go in this order: the handle before what it points to.
    let easy: EasyHandle
    let headers: StringList
    let resolved: StringList
    let message = MessageBuffer()

    var feed: BodyFeed
    var head = HeadParser()
    /// A head that is the response's only if the request is not sent again.
    var heldHead: TransferHead?
    /// When the response's head was delivered.
    var headDelivered: ContinuousClock.Instant?
    var bodyBytes = 0
    var news = TransferNews()
    /// Whether the round knows that there is news.
    var isInRound = false
    /// What the engine is told of with the next news.
    var milestones: Milestones = []
    var progress: TransferProgress
    var marks: TransferMarks
    var stop: Stop?
    var isFinished = false
    /// Who judged the server in the last handshake of a connection that was made for this transfer.
    var judge: TrustJudge?
    /// The connection that was made for the transfer, until libcurl takes it over.
    private var connection: TCPSocket?
    /// Whether it has no connection. Either libcurl asked for one and there was none: the connection that it was expected to
    /// reuse has just closed, or the server closed a reused connection before the response. Or its packets were lost. The
    /// transfer can be added again once it has a connection; see ``mayReconnect``.
    private(set) var isWithoutSocket = false
    /// The number of bytes sent over earlier connections.
    private(set) var bytesSentBefore: Int64 = 0
    /// Why the unix socket could not be opened.
    var socketFailure: SystemError?

    var paused: TransferPause
    var isWaitingForSource = false
    var inflow = Inflow()
    var idleness = Idleness()
    /// Whether the server has ended the connection with a `GOAWAY` by which it processed none of its streams.
    var isTurnedAway = false
    /// Whether the server has refused the request over HTTP/2 and requires HTTP/1.1 (RFC 9113 §7, `HTTP_1_1_REQUIRED`).
    var requiresHTTP1 = false
    /// Whether it was ended because the answer had not begun within ``TransferRequest/responseTimeout``.
    var isAnswerLate = false
    /// How often the request was sent, or at least begun.
    var sendings = 0

    /// - Parameters:
    ///   - target: The request with its timeouts reduced by the time that has passed already.
    ///   - paused: What stands still from the beginning.
    ///   - connection: The connection to use; `nil` to reuse an open one.
    ///   - multi: Who is to drive it.
    ///   - later: Lets it be changed in another turn of the loop; may be called on any thread.
    /// - Throws: ``TransferFailure`` when libcurl refuses an option.
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

    /// Prepares the transfer for being added again, with a new connection.
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
        // libcurl forgets it when the handle is added again. The log of the first sending was not read if reuse was allowed.
        if requiresHTTP1 { try easy.set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1) }
        if url.isSecure { try readLog() }
    }

    /// Otherwise libcurl would reuse a connection that has become idle, and the new one would be wasted.
    private func takeNoOther() throws(TransferFailure) {
        try easy.set(CURLOPT_FRESH_CONNECT, 1)
    }

    /// Whether it can be added again with a new connection. A request that must not be sent twice cannot, once it was sent.
    var mayReconnect: Bool {
        guard isWithoutSocket, stop == nil else { return false }
        if !mayBegin { stop = .wouldBeSentTwice }
        return stop == nil
    }

    /// Nothing of what was sent over the last connection has arrived. It does not count among what the server asks for.
    func isUnsent() {
        isWithoutSocket = true
        bytesSentBefore += bytesSentNow
        sendings = max(0, sendings - 1)
    }

    /// Whether the request may be sent: for the first time, after the server has asked for it again, or in place of one that
    /// may have arrived.
    var mayBegin: Bool { !isReady || head.hasBegun || request.mayBeResent || requiresHTTP1 }

    /// Returns the connection for libcurl, once.
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

    /// The transfer a handle belongs to.
    static func of(_ handle: UnsafeMutableRawPointer) -> Transfer? {
        netwatch_easy_get_private(handle).map(at)
    }

    /// The transfer that a callback was given.
    static func at(_ context: UnsafeMutableRawPointer) -> Transfer {
        Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    }
}

/// Owner of what `CURLOPT_ERRORBUFFER` writes to.
struct MessageBuffer: ~Copyable {
    let rawValue = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

    init() { rawValue.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE)) }

    deinit { rawValue.deallocate() }

    var text: String? {
        rawValue.pointee == 0 ? nil : String(cString: rawValue)
    }
}
