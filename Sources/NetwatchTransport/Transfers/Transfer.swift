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
    /// The connection that was made for it, until libcurl takes it.
    private var connection: TCPSocket?
    /// Whether libcurl has asked for a connection, and there was none: it was to use an open one, which has just ended or
    /// which it does not take for good enough, or the one that the request went over has ended before the response. Nothing
    /// is wrong with it, and it can be added again once it has a connection.
    private(set) var isWithoutSocket = false
    /// How many bytes were sent over connections before.
    private(set) var bytesSentBefore: Int64 = 0
    /// Why the socket for a unix socket could not be made.
    var socketFailure: SystemError?

    var paused: TransferPause
    var isWaitingForSource = false
    var inflow = Inflow()
    var idleness = Idleness()
    /// How often the request was sent, or at least begun.
    var sendings = 0

    /// - Parameters:
    ///   - target: The request with its timeouts reduced by the time that has passed already.
    ///   - paused: What stands still from the beginning.
    ///   - connection: What it goes over; `nil` when an open connection is expected to serve.
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

    /// Makes ready for being added once more, over a connection that was made in the meantime.
    ///
    /// - Parameters:
    ///   - target: The request with its timeouts reduced by the time that has passed already.
    ///   - caller: Who knows how long that has taken.
    ///   - paused: What stands still now.
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
    }

    /// libcurl would use an open connection if one has become free, and the new one would have been made in vain.
    private func takeNoOther() throws(TransferFailure) {
        try easy.set(CURLOPT_FRESH_CONNECT, 1)
    }

    /// Whether it can be added again with a connection. One that is sent once only cannot, if it was sent.
    var mayReconnect: Bool {
        guard isWithoutSocket, stop == nil else { return false }
        if isReady, !head.hasBegun, !request.allowsConnectionReuse { stop = .wouldBeSentTwice }
        return stop == nil
    }

    /// Hands over the connection that was made.
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
