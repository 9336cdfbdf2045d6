internal import CNetwatchCurl
internal import Glibc
internal import NetwatchEventLoop

// What libcurl asks for and tells.

extension Transfer {
    func setCallbacks() throws(TransferFailure) {
        let context = Unmanaged.passUnretained(self).toOpaque()
        try easy.set(CURLOPT_PRIVATE, pointer: context)
        try easy.set(CURLOPT_ERRORBUFFER, pointer: message.rawValue)
        try setRequestCallbacks(context)
        try setResponseCallbacks(context)
        try easy.setCloseSocketCallback { multi, descriptor in
            Unmanaged<CurlMulti>.fromOpaque(multi!).takeUnretainedValue().closeSocket(descriptor)
            return 0
        }
        // The connection may outlive the transfer, but not the multi handle.
        try easy.set(CURLOPT_CLOSESOCKETDATA, pointer: Unmanaged.passUnretained(multi).toOpaque())
        try easy.set(CURLOPT_OPENSOCKETDATA, pointer: context)
        try easy.setOpenSocketCallback { context, _, address in
            guard let address = address?.pointee else { return CURL_SOCKET_BAD }
            let transfer = Transfer.at(context!)
            guard transfer.request.unixSocketPath != nil else { return transfer.giveConnection() }
            return transfer.makeSocket(address.family, address.socktype, address.protocol)
        }
        if url.isSecure, multi.trust.judges, TransferCapabilities.current.usesOpenSSL {
            try easy.set(CURLOPT_SSL_CTX_DATA, pointer: context)
            try easy.setSSLContextCallback { _, connection, context in
                guard let connection, let context else { return CURLE_ABORTED_BY_CALLBACK }
                return Transfer.at(context).judgeHandshakes(of: OpaquePointer(connection))
            }
        }
        if url.isSecure, !request.allowsConnectionReuse { try readLog() }
        guard request.unixSocketPath == nil else { return }
        // libcurl 7.88.1 calls connect(2) nevertheless (curl issue 10626). Linux returns 0 for a socket that was connected
        // without blocking and on which connect(2) has not been called again.
        try easy.setSocketCallback { _, _, _ in CURL_SOCKOPT_ALREADY_CONNECTED }
    }

    /// libcurl 7.88.1 reports a `GOAWAY` in its log only, and fails as after any error of HTTP/2 (CURLE_HTTP2). On a connection
    /// of its own a request has the first stream, so a last stream of 0 means that it was not processed (RFC 9113 §6.8).
    /// That a server requires HTTP/1.1 is in the log only, too.
    func readLog() throws(TransferFailure) {
        try easy.set(CURLOPT_VERBOSE, 1)
        try easy.set(CURLOPT_DEBUGDATA, pointer: Unmanaged.passUnretained(self).toOpaque())
        try easy.setDebugCallback { _, kind, bytes, count, context in
            guard kind == CURLINFO_TEXT, let bytes, let context else { return 0 }
            let line = LogLine(UnsafeRawBufferPointer(start: bytes, count: count))
            if line.refusesAllStreams { Transfer.at(context).isTurnedAway = true }
            if line.requiresHTTP1 { Transfer.at(context).requiresHTTP1 = true }
            return 0
        }
    }

    private func giveConnection() -> curl_socket_t {
        guard let connection = takeConnection() else { return CURL_SOCKET_BAD }
        let descriptor = connection.release()
        multi.opened(descriptor, for: self)
        return descriptor
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
    }

    /// Debian 12's libcurl leaves its sockets to every program that is started meanwhile, which then keeps the
    /// connection open.
    private func makeSocket(_ family: CInt, _ kind: CInt, _ protocol: CInt) -> curl_socket_t {
        do throws(SystemError) {
            return try multi.loop.inNetworkNamespace { () throws(SystemError) in
                try systemCall("socket") { socket(family, kind | CInt(SOCK_CLOEXEC.rawValue), `protocol`) }
            }
        } catch {
            socketFailure = error
            return CURL_SOCKET_BAD
        }
    }

    private func judgeHandshakes(of connection: OpaquePointer) -> CURLcode {
        let judge = TrustJudge(multi.trust, host: url.bareHost)
        self.judge = judge
        return judge.attach(to: connection) ? CURLE_OK : CURLE_OUT_OF_MEMORY
    }

    /// Four for the longest handshakes and a stale nonce, and as often again as libcurl takes another connection for
    /// one that has ended.
    static let maximumSendings = 10

    /// There is a connection, and the request will be sent: for the first time, or once more with
    /// credentials or because an old connection had ended.
    private func requestBegins() -> Bool {
        // After a 401 libcurl takes the same connection, and would send again what it swallows.
        guard mayBegin else {
            stop = .wouldBeSentTwice
            return false
        }
        sendings += 1
        // libcurl answers challenges as long as the server calls its nonces stale.
        guard sendings <= Self.maximumSendings else {
            stop = .askedForever
            return false
        }
        milestones.insert(.connected)
        multi.use(by: self)
        touch()
        // The server was trusted, and nobody asks what it has shown.
        judge?.forget()
        judge = nil
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
        touch()
        // A pause from before the request is not known to libcurl.
        guard !paused.contains(.sending) else { return Int(CURL_READFUNC_PAUSE) }
        switch feed.read(into: buffer) {
        case .bytes(let count):
            multi.watchdog.hasMoved(count)
            return count
        case .end: return 0
        case .pending:
            isWaitingForSource = true
            feed.whenReady { [later] in later { $0.sourceIsReady() } }
            return Int(CURL_READFUNC_PAUSE)
        case .failed(let fault):
            stop = .unsendable(fault)
            return Int(CURL_READFUNC_ABORT)
        }
    }

    /// Returns the count to go on, and 0 to make libcurl end the transfer.
    private func receiveHeader(_ line: UnsafeRawBufferPointer) -> Int {
        multi.watchdog.hasMoved(line.count)
        if !head.hasBegun { marks.firstByte = caller.elapsed }
        switch head.consume(line) {
        case .more: break
        case .head(let head):
            if mayBeSentAgain(after: head) { heldHead = head } else { deliver(head) }
        case .tooLarge: stop = .headTooLarge
        case .switched: stop = .switchedProtocol
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
        // A body without a status line is HTTP/0.9 to libcurl, and another protocol to us.
        guard head.hasBegun else {
            stop = .answeredOtherwise(EscapedBytes.text(bytes))
            return 0
        }
        // As in readBody(into:). libcurl brings the same bytes again.
        guard !paused.contains(.receiving), mayTake(bytes.count) else {
            return stop == nil ? Int(CURL_WRITEFUNC_PAUSE) : 0
        }
        // What would be sent again has no body for us.
        releaseHeldHead()
        multi.watchdog.hasMoved(bytes.count)
        bodyBytes += bytes.count
        let excess = max(0, bodyBytes - (request.maximumResponseBodyBytes ?? .max))
        if excess > 0 { stop = .bodyTooLarge }
        if bytes.count > excess {
            touch()
            news.add(body: UnsafeRawBufferPointer(rebasing: bytes.dropLast(excess)))
            if news.isMuch { caller.deliver(news.takeWhole()) }
        }
        return stop == nil ? bytes.count : 0
    }

    func releaseHeldHead() {
        if let heldHead { deliver(heldHead) }
        heldHead = nil
    }

    private func deliver(_ head: TransferHead) {
        headDelivered = .now
        let isMultiplexed = head.version == "HTTP/2"
        milestones.formUnion(isMultiplexed ? [.answered, .multiplexed] : .answered)
        multi.knows(isMultiplexed, ofConnectionOf: id)
        touch()
        news.add(.head(head))
    }

    /// There will be news at the end of this turn.
    private func touch() {
        guard !isInRound else { return }
        isInRound = true
        multi.round.add(self)
    }

    /// Returns how far it has come for the first time.
    func tellNews() -> Milestones {
        isInRound = false
        inflow.turnEnds()
        defer { milestones = [] }
        // One that has ended in the meantime has told everything.
        guard !isFinished else { return milestones }
        addProgress()
        if !news.isEmpty { caller.deliver(news.take()) }
        return milestones
    }

    /// libcurl is asked once a turn, not told by it for every packet.
    func addProgress() {
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
        news.add(.progress(current))
    }
}
