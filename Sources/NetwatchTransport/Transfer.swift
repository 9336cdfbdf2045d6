internal import CNetwatchCurl
internal import Glibc
internal import NetwatchEventLoop

/// One transfer under way: an easy handle with everything its callbacks touch.
///
/// Lives on the engine's thread. libcurl holds an unretained pointer to it, so whoever adds its handle to a
/// multi handle keeps the transfer until the handle was removed again.
final class Transfer {
    /// Why a callback of ours told libcurl to stop.
    private enum Stop {
        case unbound(SystemError)
        case headTooLarge
        case bodyTooLarge
        case unsendable(BodyFeed.Fault)
        case wouldBeSentTwice
    }

    let id: TransferID
    let request: TransferRequest
    let isSecure: Bool
    private let caller: TransferCaller
    private let onSourceReady: @Sendable () -> Void

    // Fields go in this order: the handle before what it points to.
    private let easy: EasyHandle
    private let headers: StringList
    private let resolved: StringList
    private let message = MessageBuffer()

    private var feed: BodyFeed
    private var head = HeadParser()
    /// A head that is the response's only if the request is not sent again.
    private var heldHead: TransferHead?
    private var hasDeliveredHead = false
    private var bodyBytes = 0
    private var progress: TransferProgress
    private var marks: TransferMarks
    private var stop: Stop?

    private var paused: TransferPause
    private var isWaitingForSource = false

    /// - Parameters:
    ///   - target: The request with its timeouts reduced by the time that has passed already.
    ///   - paused: What stands still from the beginning.
    ///   - onSourceReady: Called on any thread; answers with ``sourceIsReady()``.
    /// - Throws: ``TransferFailure`` when libcurl refuses an option.
    init(
        id: TransferID,
        target: TransferTarget,
        caller: TransferCaller,
        paused: TransferPause,
        onSourceReady: @escaping @Sendable () -> Void
    ) throws(TransferFailure) {
        guard let easy = EasyHandle() else { throw .refused(CURLE_OUT_OF_MEMORY, "out of memory") }
        self.id = id
        self.caller = caller
        self.paused = paused
        self.onSourceReady = onSourceReady
        self.easy = easy
        request = target.request
        isSecure = target.url.scheme == "https"
        feed = BodyFeed(target.request.body)
        progress = TransferProgress(sent: 0, toSend: feed.length, received: 0, toReceive: nil)
        marks = TransferMarks(launched: caller.elapsed)
        headers = target.request.headerList()
        resolved = target.resolveList()
        try self.easy.apply(target.request)
        try self.easy.set(CURLOPT_HTTPHEADER, pointer: headers.rawValue)
        if let entry = resolved.rawValue { try self.easy.set(CURLOPT_RESOLVE, pointer: entry) }
        if !paused.isEmpty { try self.easy.setIdleTimeout(nil) }
        try setCallbacks()
    }

    var handle: UnsafeMutableRawPointer { easy.rawValue }

    /// The transfer a handle belongs to.
    static func of(_ handle: UnsafeMutableRawPointer) -> Transfer? {
        netwatch_easy_get_private(handle).map(at)
    }

    /// The transfer that a callback was given.
    private static func at(_ context: UnsafeMutableRawPointer) -> Transfer {
        Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    }
}

// MARK: - Callbacks

extension Transfer {
    private func setCallbacks() throws(TransferFailure) {
        let context = Unmanaged.passUnretained(self).toOpaque()
        try easy.set(CURLOPT_PRIVATE, pointer: context)
        try easy.set(CURLOPT_ERRORBUFFER, pointer: message.rawValue)
        try setRequestCallbacks(context)
        try setResponseCallbacks(context)
        // Debian 12's libcurl leaves its sockets to every program that is started meanwhile, which then keeps
        // the connection open.
        try easy.setOpenSocketCallback { _, _, address in
            guard let address = address?.pointee else { return CURL_SOCKET_BAD }
            return socket(address.family, address.socktype | CInt(SOCK_CLOEXEC.rawValue), address.protocol)
        }
        guard request.binding != nil else { return }
        try easy.set(CURLOPT_SOCKOPTDATA, pointer: context)
        // CURLOPT_INTERFACE would do for the interface or for the source address, not for both.
        try easy.setSocketCallback { context, socket, _ in
            Transfer.at(context!).bind(socket) ? CURL_SOCKOPT_OK : CURL_SOCKOPT_ERROR
        }
    }

    private func setRequestCallbacks(_ context: UnsafeMutableRawPointer) throws(TransferFailure) {
        try easy.set(CURLOPT_PREREQDATA, pointer: context)
        try easy.setRequestCallback { context, _, _, _, _ in
            Transfer.at(context!).requestBegins() ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
        }
        try easy.set(CURLOPT_READDATA, pointer: context)
        try easy.set(CURLOPT_READFUNCTION) { bytes, size, count, context in
            let buffer = UnsafeMutableRawBufferPointer(start: bytes, count: size * count)
            return Transfer.at(context!).readBody(into: buffer)
        }
        try easy.set(CURLOPT_SEEKDATA, pointer: context)
        try easy.setSeekCallback { context, offset, origin in
            Transfer.at(context!).rewindBody(to: offset, origin) ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL
        }
    }

    private func setResponseCallbacks(_ context: UnsafeMutableRawPointer) throws(TransferFailure) {
        try easy.set(CURLOPT_HEADERDATA, pointer: context)
        try easy.set(CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
            let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
            return Transfer.at(context!).receiveHeader(line)
        }
        try easy.set(CURLOPT_WRITEDATA, pointer: context)
        try easy.set(CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
            let bytes = UnsafeRawBufferPointer(start: bytes, count: size * count)
            return Transfer.at(context!).receiveBody(bytes)
        }
        try easy.set(CURLOPT_NOPROGRESS, 0)
        try easy.set(CURLOPT_XFERINFODATA, pointer: context)
        try easy.setProgressCallback { context, _, _, _, _ in
            Transfer.at(context!).reportProgress()
            return 0
        }
    }

    private func bind(_ socket: CInt) -> Bool {
        do throws(SystemError) {
            try request.binding?.apply(to: socket)
            return true
        } catch {
            stop = .unbound(error)
            return false
        }
    }

    /// There is a connection, and the request will be sent: for the first time, or once more with
    /// credentials or because an old connection had ended.
    private func requestBegins() -> Bool {
        // After a 401 libcurl takes the same connection, and would send again what it swallows.
        if isReady, !head.hasBegun, !request.allowsConnectionReuse {
            stop = .wouldBeSentTwice
            return false
        }
        marks.requestBegins(at: caller.elapsed, easy)
        heldHead = nil
        head.restart()
        // libcurl asks for it only when a part of the body has reached the socket.
        return feed.isUntouched || rewindBody(to: 0, SEEK_SET)
    }

    private func rewindBody(to offset: curl_off_t, _ origin: CInt) -> Bool {
        if offset == 0, origin == SEEK_SET, feed.rewind() { return true }
        stop = .unsendable(.notRewindable)
        return false
    }

    /// Returns how many bytes there are, or one of `CURL_READFUNC_…`.
    private func readBody(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        // A pause from before the request is not known to libcurl.
        guard !paused.contains(.sending) else { return Int(CURL_READFUNC_PAUSE) }
        switch feed.read(into: buffer) {
        case .bytes(let count): return count
        case .end: return 0
        case .pending:
            isWaitingForSource = true
            feed.whenReady(onSourceReady)
            return Int(CURL_READFUNC_PAUSE)
        case .failed(let fault):
            stop = .unsendable(fault)
            return Int(CURL_READFUNC_ABORT)
        }
    }

    /// Returns the count to go on, and 0 to make libcurl end the transfer.
    private func receiveHeader(_ line: UnsafeRawBufferPointer) -> Int {
        if !head.hasBegun { marks.firstByte = caller.elapsed }
        switch head.consume(line) {
        case .more: break
        case .head(let head): if mayBeSentAgain(after: head) { heldHead = head } else { deliver(head) }
        case .tooLarge: stop = .headTooLarge
        }
        return stop == nil ? line.count : 0
    }

    /// libcurl sends no body while it still negotiates, and then sends the request again even after a success.
    private func mayBeSentAgain(after head: TransferHead) -> Bool {
        guard request.credentials != nil else { return false }
        return head.status == 401 || head.status == 407 || request.isSentWithBody && feed.isUntouched
    }

    /// Returns the count to go on, and 0 to make libcurl end the transfer.
    private func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Int {
        // As in readBody(into:). libcurl brings the same bytes again.
        guard !paused.contains(.receiving) else { return Int(CURL_WRITEFUNC_PAUSE) }
        // What would be sent again has no body for us.
        releaseHeldHead()
        bodyBytes += bytes.count
        let excess = max(0, bodyBytes - (request.maximumResponseBodyBytes ?? .max))
        if excess > 0 { stop = .bodyTooLarge }
        let wanted = bytes.dropLast(excess)
        if !wanted.isEmpty { caller.deliver(.body(Array(wanted))) }
        return stop == nil ? bytes.count : 0
    }

    private func releaseHeldHead() {
        if let heldHead { deliver(heldHead) }
        heldHead = nil
    }

    private func deliver(_ head: TransferHead) {
        hasDeliveredHead = true
        caller.deliver(.head(head))
    }

    private func reportProgress() {
        // A response that asks for credentials is none of the caller's.
        let isFinal = hasDeliveredHead
        let total = easy.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T)
        let current = TransferProgress(
            sent: easy.offset(CURLINFO_SIZE_UPLOAD_T),
            toSend: feed.length,
            received: isFinal ? easy.offset(CURLINFO_SIZE_DOWNLOAD_T) : 0,
            toReceive: isFinal && total >= 0 && request.method != "HEAD" ? total : nil
        )
        guard current != progress else { return }
        progress = current
        caller.deliver(.progress(current))
    }
}

// MARK: - Pauses

extension Transfer {
    /// Lets parts of the transfer stand still, in addition to those that do.
    ///
    /// libcurl stops at once when it is sending or receiving, and forgets what it is told before; the callbacks
    /// see to that. Like the functions below, it must not be called from a callback, and what it returns other
    /// than `CURLE_OK` ends the transfer.
    func pause(_ what: TransferPause) -> CURLcode {
        paused.formUnion(what)
        // libcurl does not count a pause in receiving, but one in sending.
        try? easy.setIdleTimeout(nil)
        return applyPause()
    }

    /// Lets everything go on.
    func resume() -> CURLcode {
        guard !paused.isEmpty else { return CURLE_OK }
        paused = []
        try? easy.setIdleTimeout(request.idleTimeout)
        // Only a change makes libcurl forget since when nothing has moved, and it may be waiting for a source.
        _ = curl_easy_pause(handle, TransferPause.all.mask)
        return applyPause()
    }

    func sourceIsReady() -> CURLcode {
        guard isWaitingForSource else { return CURLE_OK }
        isWaitingForSource = false
        return applyPause()
    }

    private func applyPause() -> CURLcode {
        let code = curl_easy_pause(handle, paused.union(isWaitingForSource ? .sending : []).mask)
        // There is no connection yet.
        return code == CURLE_BAD_FUNCTION_ARGUMENT ? CURLE_OK : code
    }
}

// MARK: - The end

extension Transfer {
    /// Reports the end. The handle has been removed from its multi handle, and nothing is delivered after.
    func finish(_ code: CURLcode) {
        if code == CURLE_OK { releaseHeldHead() }
        finish(code == CURLE_OK ? nil : failure(of: code))
    }

    /// Reports an end that libcurl has no part in.
    func finish(_ code: CURLcode, errno: CInt = 0, message: String) {
        finish(failure(code: Int32(code.rawValue), errno: errno, message: message))
    }

    private func finish(_ failure: TransferFailure?) {
        reportProgress()
        caller.end(failure, metrics)
    }

    private func failure(of code: CURLcode) -> TransferFailure {
        switch stop {
        case .unbound(let error):
            let interfaceFailed = Int32(CURLE_INTERFACE_FAILED.rawValue)
            return failure(code: interfaceFailed, errno: error.errno, message: "\(error)")
        case .headTooLarge: return headTooLarge
        case .bodyTooLarge:
            let message = "the response's body is longer than \(request.maximumResponseBodyBytes ?? 0) bytes"
            return failure(code: Int32(CURLE_FILESIZE_EXCEEDED.rawValue), message: message)
        case .unsendable(let fault):
            let code = fault.code.rawValue
            return failure(code: Int32(code), errno: fault.errno, message: fault.message)
        case .wouldBeSentTwice:
            let message = "the connection ended before the response, and the request is sent once only"
            return failure(code: Int32(CURLE_GOT_NOTHING.rawValue), phase: .response, message: message)
        case nil:
            // libcurl gives up on a single line of 100 KiB as if memory had run out.
            if code == CURLE_OUT_OF_MEMORY, reachedPhase == .response, !head.isComplete {
                return headTooLarge
            }
            let text = message.text ?? String(cString: curl_easy_strerror(code))
            let errno = CInt(easy.long(CURLINFO_OS_ERRNO))
            return failure(code: Int32(code.rawValue), errno: errno, message: text)
        }
    }

    /// `CURLE_TOO_LARGE`, which Debian 12's header does not have yet.
    private var headTooLarge: TransferFailure {
        failure(code: 100, message: "the response's head is longer than \(HeadParser.maximumBytes) bytes")
    }

    private func failure(
        code: Int32,
        errno: CInt = 0,
        phase: TransferFailure.Phase? = nil,
        message: String
    ) -> TransferFailure {
        TransferFailure(
            code: code,
            osErrno: errno,
            phase: phase ?? reachedPhase,
            bytesSent: bytesSent,
            reusedConnection: reusedConnection,
            message: message
        )
    }

    private var bytesSent: Int64 {
        Int64(easy.long(CURLINFO_REQUEST_SIZE)) + easy.offset(CURLINFO_SIZE_UPLOAD_T)
    }

    private var isReady: Bool { marks.requestReady != nil }

    private var reusedConnection: Bool { isReady && easy.long(CURLINFO_NUM_CONNECTS) == 0 }

    private var reachedPhase: TransferFailure.Phase {
        if head.hasBegun { return .response }
        if isReady { return isSent ? .response : .request }
        // CURLINFO_CONNECT_TIME stays 0 until the handshake is over; the socket's own port does not.
        guard easy.long(CURLINFO_LOCAL_PORT) > 0 else { return .connect }
        return isSecure ? .tls : .request
    }

    private var isSent: Bool {
        let count = easy.offset(CURLINFO_SIZE_UPLOAD_T)
        guard let length = feed.length else { return feed.hasEnded }
        return bytesSent > length && count >= length
    }

    private var metrics: TransferMetrics {
        var metrics = caller.metrics
        marks.fill(&metrics, easy, isReused: reusedConnection)
        metrics.fill(from: easy)
        metrics.reusedConnection = reusedConnection
        metrics.usedTLS = isSecure && isReady
        return metrics
    }
}

extension BodyFeed.Fault {
    /// How libcurl calls it.
    fileprivate var code: CURLcode {
        if case .notRewindable = self { CURLE_SEND_FAIL_REWIND } else { CURLE_READ_ERROR }
    }
}

/// Owner of what `CURLOPT_ERRORBUFFER` writes to.
private struct MessageBuffer: ~Copyable {
    let rawValue = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

    init() { rawValue.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE)) }

    deinit { rawValue.deallocate() }

    var text: String? {
        rawValue.pointee == 0 ? nil : String(cString: rawValue)
    }
}
