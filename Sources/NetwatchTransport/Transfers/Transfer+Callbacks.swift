internal import CNetwatchCurl
internal import Glibc
internal import NetwatchEventLoop

// The callbacks that libcurl calls.

extension Transfer {
    /// Sets the callbacks of a new handle. They are called for each transfer that uses it.
    func setCallbacks() throws(TransferFailure) {
        let pointer = handle.context
        try setRequestCallbacks(pointer)
        try setResponseCallbacks(pointer)
        try context.setCloseSocketCallback(of: easy)
        try easy.set(CURLOPT_OPENSOCKETDATA, pointer: pointer)
        try easy.setOpenSocketCallback { context, _, address in
            guard let address = address?.pointee else { return CURL_SOCKET_BAD }
            let transfer = Transfer.at(context!)
            transfer.handle.transferBegins()
            transfer.hasNewConnection = true
            guard transfer.request.unixSocketPath != nil else { return transfer.handOverConnection() }
            let descriptor = transfer.makeSocket(address.family, address.socktype, address.protocol)
            transfer.unixSocket = descriptor
            return descriptor
        }
        if url.isSecure, context.trust.evaluatesHandshakes, TransferCapabilities.current.usesOpenSSL {
            try easy.set(CURLOPT_SSL_CTX_DATA, pointer: pointer)
            try easy.setSSLContextCallback { _, connection, context in
                guard let connection, let context else { return CURLE_ABORTED_BY_CALLBACK }
                return Transfer.at(context).evaluateHandshakes(of: OpaquePointer(connection))
            }
        }
        if url.isSecure, !request.allowsConnectionReuse { try readVerboseLog() }
        guard request.unixSocketPath == nil else { return }
        // libcurl 7.88.1 calls connect(2) in spite of this result (curl issue 10626). That is harmless: Linux returns 0
        // for the first connect(2) after a non-blocking connection has been established.
        try easy.setSocketCallback { _, _, _ in CURL_SOCKOPT_ALREADY_CONNECTED }
    }

    /// Makes libcurl write its log, and reads two facts from it. libcurl 7.88.1 reports both only there, and then fails
    /// with its general HTTP/2 error (`CURLE_HTTP2`):
    ///
    /// - The server sent a `GOAWAY` with 0 as its last stream. On a new connection, the request has the first stream,
    ///   so the server has not processed it (RFC 9113 §6.8).
    /// - The server requires HTTP/1.1.
    func readVerboseLog() throws(TransferFailure) {
        try easy.set(CURLOPT_VERBOSE, 1)
        try easy.set(CURLOPT_DEBUGDATA, pointer: handle.context)
        try easy.setDebugCallback { _, kind, bytes, count, context in
            guard kind == CURLINFO_TEXT, let bytes, let context else { return 0 }
            let line = LogLine(UnsafeRawBufferPointer(start: bytes, count: count))
            if line.refusesAllStreams { Transfer.at(context).sending.refuseAllStreams() }
            if line.requiresHTTP1 { Transfer.at(context).sending.requireHTTP1() }
            return 0
        }
    }

    private func handOverConnection() -> curl_socket_t {
        guard let connection = takeConnection() else { return CURL_SOCKET_BAD }
        let descriptor = connection.release()
        context.didOpen(descriptor, for: self)
        return descriptor
    }

    private func setRequestCallbacks(_ pointer: UnsafeMutableRawPointer) throws(TransferFailure) {
        try easy.set(CURLOPT_PREREQDATA, pointer: pointer)
        try easy.setRequestCallback { context, _, _, _, _ in
            Transfer.at(context!).requestBegins() ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
        }
        try easy.set(CURLOPT_READDATA, pointer: pointer)
        try easy.set(CURLOPT_READFUNCTION) { bytes, size, count, context in
            let buffer = UnsafeMutableRawBufferPointer(start: bytes, count: size * count)
            return Transfer.at(context!).readBody(into: buffer)
        }
        try easy.set(CURLOPT_SEEKDATA, pointer: pointer)
        try easy.setSeekCallback { context, offset, origin in
            Transfer.at(context!).rewindBody(to: offset, origin) ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL
        }
    }

    private func setResponseCallbacks(_ pointer: UnsafeMutableRawPointer) throws(TransferFailure) {
        try easy.set(CURLOPT_HEADERDATA, pointer: pointer)
        try easy.set(CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
            let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
            return Transfer.at(context!).receiveHeader(line)
        }
        try easy.set(CURLOPT_WRITEDATA, pointer: pointer)
        try easy.set(CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
            let bytes = UnsafeRawBufferPointer(start: bytes, count: size * count)
            return Transfer.at(context!).receiveBody(bytes)
        }
    }

    /// Creates a socket with `SOCK_CLOEXEC`. libcurl in Debian 12 does not set this flag. A program that is started
    /// meanwhile would inherit the socket and keep the connection open.
    private func makeSocket(_ family: CInt, _ kind: CInt, _ protocol: CInt) -> curl_socket_t {
        do throws(SystemError) {
            return try context.loop.inNetworkNamespace { () throws(SystemError) in
                try systemCall("socket") { socket(family, kind | CInt(SOCK_CLOEXEC.rawValue), `protocol`) }
            }
        } catch {
            socketFailure = error
            return CURL_SOCKET_BAD
        }
    }

    /// The maximum number of times that a request is sent. The longest authentication, with a stale nonce, needs four.
    /// The other six are for retries: libcurl sends the request again over another connection if the first connection
    /// has ended.
    static let maximumSendCount = 10

    /// Handles libcurl's callback each time before it sends the request, when the connection is ready. Returns whether
    /// libcurl may send the request.
    ///
    /// libcurl sends a request again for two reasons: to add credentials, or because a reused connection has ended.
    private func requestBegins() -> Bool {
        handle.transferBegins()
        // After a 401, libcurl reuses the connection in spite of `CURLOPT_FRESH_CONNECT`. If that connection ends
        // before the response, libcurl sends the request again.
        guard maySend else {
            stop = .resendForbidden
            return false
        }
        // Not earlier, because libcurl closes a socket that it could not connect without a callback.
        if hasNewConnection, let unixSocket { context.didOpen(unixSocket, for: self) }
        context.didSelectConnection(for: self)
        guard mayUseConnection() else {
            sending.loseConnection(bytes: currentBytesSent)
            return false
        }
        sending.willSend(from: context.sentBytes(connectionOf: id))
        // Without this limit, libcurl would answer challenges forever if the server marks each nonce as stale.
        guard sending.count <= Self.maximumSendCount else {
            stop = .sentTooOften
            return false
        }
        output.requestBegins()
        scheduleDelivery()
        // The server is trusted now, so the presented certificates are no longer needed.
        evaluator?.releaseCertificates()
        evaluator = nil
        times.requestBegins(at: reporter.elapsed, handshakeEnded: handle.time(CURLINFO_APPCONNECT_TIME_T))
        head.restart()
        acceptedBodyBytes = 0
        // If libcurl has read a part of the body but the socket has not accepted any of it, libcurl does not call the
        // seek callback. So the body is rewound here.
        return bodyReader.isUntouched || rewindBody(to: 0, SEEK_SET)
    }

    /// Returns whether the request can be sent over the connection that libcurl selected. Data that arrived over a
    /// reused HTTP/1.1 connection before the request belongs to no request, so libcurl must close the connection (RFC
    /// 9112 §9.2). Other connections may have data to read: session tickets of TLS, or frames of HTTP/2.
    private func mayUseConnection() -> Bool {
        defer { hasNewConnection = false }
        guard !hasNewConnection, let hasUnreadData = context.hasUnreadData(connectionOf: self) else {
            return true
        }
        return !hasUnreadData && !(url.isSecure && easy.hasUnreadTLSData)
    }

    private func rewindBody(to offset: curl_off_t, _ origin: CInt) -> Bool {
        if offset == 0, origin == SEEK_SET, bodyReader.rewind() { return true }
        stop = .bodyFailed(.notRewindable)
        return false
    }

    /// Writes the next part of the request's body to libcurl's buffer. Returns the number of bytes written, or one of
    /// `CURL_READFUNC_…`.
    private func readBody(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        scheduleDelivery()
        // libcurl ignores a pause that was set before the request began, so the callback enforces it.
        guard !paused.contains(.sending) else { return Int(CURL_READFUNC_PAUSE) }
        switch bodyReader.read(into: buffer) {
        case .bytes(let count):
            context.recordUsefulBytes(count)
            return count
        case .end: return 0
        case .pending:
            flow.waitForSource()
            bodyReader.whenReady { [later = context.later, id] in later(id) { $0.sourceIsReady() } }
            return Int(CURL_READFUNC_PAUSE)
        case .failed(let fault):
            stop = .bodyFailed(fault)
            return Int(CURL_READFUNC_ABORT)
        }
    }

    /// Handles one header line of the response. Returns the line's length to continue, or 0 to make libcurl end the
    /// transfer.
    private func receiveHeader(_ line: UnsafeRawBufferPointer) -> Int {
        context.recordUsefulBytes(line.count)
        if !head.hasBegun {
            recordRequestEnd()
            times.responseBegins(at: reporter.elapsed)
        }
        switch head.consume(line) {
        case .more: break
        case .head(let head):
            prepareDecoder(for: head)
            if mayBeSentAgain(after: head) { output.hold(head) } else { deliver(head) }
        case .invalidStatusLine: stop = .notHTTP(EscapedBytes.text(line))
        case .ambiguousLength: stop = .ambiguousLength
        case .unsupportedTransferCoding(let codings): stop = .unsupportedTransferCoding(codings)
        case .tooLarge: stop = .headTooLarge
        case .switched: stop = .switchedProtocol
        }
        return stop == nil ? line.count : 0
    }

    /// Returns whether libcurl may send the request again after this response. In that case the caller must not see its
    /// head yet.
    ///
    /// Only a request with credentials is sent again. libcurl does so after a 401 or 407. During a negotiation, libcurl
    /// sends the request without its body at first, so it must send the request again even after a success.
    private func mayBeSentAgain(after head: TransferHead) -> Bool {
        guard request.credentials != nil else { return false }
        return head.status == 401 || head.status == 407 || request.isSentWithBody && bodyReader.isUntouched
    }

    /// Handles received bytes of the body. Returns their number to continue, 0 to make libcurl end the transfer, or
    /// `CURL_WRITEFUNC_PAUSE`.
    private func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Int {
        // libcurl treats a body without a status line as HTTP/0.9. netwatch treats it as another protocol.
        guard head.hasBegun else {
            stop = .notHTTP(EscapedBytes.text(bytes))
            return 0
        }
        // libcurl ignores a pause that was set before the request began, so the callback enforces it. libcurl delivers
        // the same bytes again after a pause.
        guard !paused.contains(.receiving), mayReceive() else { return Int(CURL_WRITEFUNC_PAUSE) }
        // libcurl delivers no body if it will send the request again. So these bytes show that the pending head is
        // final.
        deliverPendingHead()
        flow.beginPart()
        if let decoder {
            guard decode(bytes, with: decoder) else { return Int(CURL_WRITEFUNC_PAUSE) }
        } else if mayProduce(bytes.count) {
            _ = accept(bytes)
        }
        context.recordUsefulBytes(bytes.count)
        guard stop == nil else { return 0 }
        acceptedBodyBytes += Int64(bytes.count)
        return bytes.count
    }

    /// Decodes received bytes part by part. Returns `false` if the rest must wait for the next turn. libcurl then
    /// delivers the same bytes again, and those that have been decoded are skipped.
    private func decode(_ bytes: UnsafeRawBufferPointer, with decoder: ContentDecoder) -> Bool {
        var rest = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(decodedCount))
        decodedCount = 0
        while !rest.isEmpty {
            let part = UnsafeRawBufferPointer(rebasing: rest.prefix(ReceiveLimiter.encodedPartSize))
            do {
                flow.beginPart()
                try decoder.decode(part, counting: mayProduce, accept)
            } catch {
                stop = .undecodable(error as? ContentDecoder.Failure ?? .invalid("\(error)"))
            }
            rest.consume(part.count)
            guard stop == nil else { return true }
            guard rest.isEmpty || flow.mayContinue() else {
                decodedCount = bytes.count - rest.count
                context.later(id) { $0.resumeReceiving() }
                return false
            }
        }
        return true
    }

    /// Returns whether the transfer may receive now. If not, receiving is paused until the next turn.
    private func mayReceive() -> Bool {
        if flow.mayReceive(received: handle.offset(CURLINFO_SIZE_DOWNLOAD_T)) { return true }
        context.later(id) { $0.resumeReceiving() }
        return false
    }

    /// Counts bytes that a decoder has produced. Returns `false` if this has set the reason to end the transfer.
    private func mayProduce(_ count: Int) -> Bool {
        if flow.accepts(count) { return true }
        stop = .bodyExpands
        return false
    }

    /// Accepts decoded bytes of the body. Returns `false` if this has set the reason to end the transfer.
    private func accept(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let excess = output.add(body: bytes, limit: request.maximumResponseBodyBytes)
        if excess > 0 { stop = .bodyTooLarge }
        if bytes.count > excess {
            scheduleDelivery()
            if output.isFull { reporter.deliver(output.takeComplete()) }
        }
        return stop == nil
    }

    func deliverPendingHead() {
        if let head = output.takePendingHead() { deliver(head) }
    }

    private func deliver(_ head: TransferHead) {
        context.setMultiplexed(head.isMultiplexed, connectionOf: id)
        scheduleDelivery()
        output.add(head)
    }

    /// Registers the transfer for event delivery at the end of this turn.
    private func scheduleDelivery() {
        if output.register() { context.scheduleDelivery(to: self) }
    }

    /// Delivers the buffered events at the end of a turn. Returns the milestones reached since the last call.
    func deliverEvents() -> Milestones {
        flow.turnDidEnd()
        let milestones = output.turnDidEnd()
        // A transfer that has finished during this turn has already delivered all its events.
        guard !isFinished else { return milestones }
        recordRequestEnd()
        addProgress()
        let events = output.take()
        if !events.isEmpty { reporter.deliver(events) }
        return milestones
    }

    /// Records the time at which the kernel had accepted the whole request. libcurl has no callback for that, so this
    /// function is called whenever the transfer has an event.
    private func recordRequestEnd() {
        if times.awaitsRequestEnd, isSent { times.requestEnds(at: reporter.elapsed) }
    }

    /// Adds a progress event if the progress has changed. Called once per turn, because libcurl's own progress callback
    /// would run for every packet.
    func addProgress() {
        // Before the head is delivered, the body belongs to a response that asks for credentials. It does not count,
        // because the caller never sees that response.
        let isFinal = output.hasDeliveredHead
        let total = handle.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T)
        let progress = TransferProgress(
            sent: handle.offset(CURLINFO_SIZE_UPLOAD_T),
            toSend: bodyReader.length,
            received: isFinal ? handle.offset(CURLINFO_SIZE_DOWNLOAD_T) : 0,
            toReceive: isFinal && total >= 0 && request.method != "HEAD" ? total : nil
        )
        output.add(progress)
    }
}
