internal import CNetwatchCurl
internal import Glibc
internal import NetwatchEventLoop

extension Transfer {
    /// Reports the end. The handle was removed from its multi handle, and nothing is delivered afterwards.
    func finish(_ code: CURLcode) {
        // When the watchdog shuts the connection down, libcurl may take this for the regular end of the response.
        guard code == CURLE_OK, !hasKeptBusy else { return finish(failure(of: code)) }
        releaseHeldHead()
        finish(hasDeliveredHead ? nil : headCut)
    }

    /// Reports an end that libcurl did not cause.
    func finish(_ code: CURLcode, errno: CInt = 0, message: String) {
        finish(failure(code: Int32(code.rawValue), errno: errno, message: message))
    }

    /// Reports that libcurl needed a connection and none could be made.
    func finish(unconnected: TransferFailure) {
        // Data sent over an earlier connection may have arrived.
        let phase = isReady ? reachedPhase : unconnected.phase
        var failure = failure(
            code: unconnected.code,
            errno: unconnected.osErrno,
            resolverCode: unconnected.resolverCode,
            phase: phase,
            message: unconnected.message
        )
        failure.connectionAttempts = unconnected.connectionAttempts
        finish(failure)
    }

    private func finish(_ failure: TransferFailure?) {
        precondition(!isFinished, "a transfer ends once")
        addProgress()
        isFinished = true
        caller.end(failure, metrics, after: news.take())
    }

    private func failure(of code: CURLcode) -> TransferFailure {
        switch stop {
        case .headTooLarge: return headTooLarge
        case .switchedProtocol:
            let code = Int32(CURLE_WEIRD_SERVER_REPLY.rawValue)
            return failure(code: code, message: "the server switched to another protocol unasked")
        case .bodyTooLarge:
            let message = "the response's body is longer than \(request.maximumResponseBodyBytes ?? 0) bytes"
            return failure(code: Int32(CURLE_FILESIZE_EXCEEDED.rawValue), message: message)
        case .bodyInflates: return bodyInflates
        case .askedForever:
            let message = "the server has asked for the request \(Self.maximumSendings) times"
            return failure(code: Int32(CURLE_LOGIN_DENIED.rawValue), phase: .response, message: message)
        case .unsendable(let fault):
            let code = fault.code.rawValue
            return failure(code: Int32(code), errno: fault.errno, message: fault.message)
        case .wouldBeSentTwice:
            return sentOnce
        case .answeredOtherwise(let text):
            return failure(
                code: Int32(CURLE_WEIRD_SERVER_REPLY.rawValue),
                message: "the answer is not HTTP: \(text)"
            )
        case .keptBusy(let bytes):
            let message =
                "the server kept libcurl busy with frames of which nothing comes, \(bytes) bytes of late"
            return failure(code: Int32(CURLE_WEIRD_SERVER_REPLY.rawValue), phase: .response, message: message)
        case nil:
            // libcurl reports a single header line of 100 KiB as if it had run out of memory.
            if code == CURLE_OUT_OF_MEMORY, reachedPhase == .response {
                if !head.isComplete { return headTooLarge }
                // libcurl also keeps at most 64 MiB of decoded data when a pause interrupts the decoding.
                if request.acceptEncoding != nil { return bodyInflates }
            }
            let text = message.text ?? String(cString: curl_easy_strerror(code))
            // libcurl reports this as a receive failure, like a reset.
            if code == CURLE_RECV_ERROR, text.hasSuffix("in chunked-encoding") {
                return failure(code: Int32(CURLE_WEIRD_SERVER_REPLY.rawValue), message: text)
            }
            // The status line has an unknown version (HTTP/3.9) or a status that is not a number. libcurl does not
            // expose its bytes.
            if code == CURLE_UNSUPPORTED_PROTOCOL, isReady {
                let message = "the answer is not HTTP: \(text)"
                return failure(code: Int32(CURLE_WEIRD_SERVER_REPLY.rawValue), message: message)
            }
            let errno = errno(of: code)
            // libcurl's message is only "Couldn't connect to server", whatever the system error was.
            let why = code == CURLE_COULDNT_CONNECT && errno != 0 ? ": \(errnoDescription(errno))" : ""
            return failure(code: Int32(code.rawValue), errno: errno, message: text + why)
        }
    }

    /// The failure of a request that libcurl tried to send again.
    ///
    /// On a new connection and without credentials, libcurl does so when the server has refused the HTTP/2 stream
    /// (`REFUSED_STREAM`, or a `GOAWAY` that names an earlier stream as the last, RFC 9113 §8.7). In that case the
    /// server did not process the request.
    private var sentOnce: TransferFailure {
        let code = Int32(CURLE_GOT_NOTHING.rawValue)
        guard request.credentials == nil, !request.allowsConnectionReuse else {
            let message = "the connection ended before the response, and the request is sent once only"
            return failure(code: code, phase: .response, message: message)
        }
        var failure = failure(
            code: code,
            phase: .response,
            message: "the server refused the HTTP/2 stream and did not process the request"
        )
        // Over HTTP/1.1, a request that the server had sent back may have been processed.
        failure.isUnprocessed = sendings == 1
        return failure
    }

    private func errno(of code: CURLcode) -> CInt {
        // libcurl does not ask why the callback returned no socket.
        if code == CURLE_COULDNT_CONNECT, let socketFailure { return socketFailure.errno }
        let errno = CInt(easy.long(CURLINFO_OS_ERRNO))
        // libcurl takes EAGAIN of connect(2) for a connection that is being made, and then finds no error. A unix socket has
        // neither: more connections wait than the server accepts.
        let isFull = code == CURLE_COULDNT_CONNECT && errno == 0 && request.unixSocketPath != nil
        return isFull ? EAGAIN : errno
    }

    private var bodyInflates: TransferFailure {
        let message =
            "\(Inflow.encodedReadSize) bytes of the response's body decode to more than \(Inflow.readLimit)"
        return failure(code: Int32(CURLE_BAD_CONTENT_ENCODING.rawValue), message: message)
    }

    /// The failure for a head that ends early. libcurl takes such a head for a complete one.
    private var headCut: TransferFailure {
        let code = Int32(CURLE_PARTIAL_FILE.rawValue)
        return failure(code: code, message: "the connection ended within the response's head")
    }

    /// The code is `CURLE_TOO_LARGE`, which is not in Debian 12's header yet.
    private var headTooLarge: TransferFailure {
        failure(code: 100, message: "the response's head is longer than \(HeadParser.maximumBytes) bytes")
    }

    private func failure(
        code: Int32,
        errno: CInt = 0,
        resolverCode: CInt = 0,
        phase: TransferFailure.Phase? = nil,
        message: String
    ) -> TransferFailure {
        var failure = TransferFailure(
            code: code,
            osErrno: errno,
            resolverCode: resolverCode,
            phase: phase ?? reachedPhase,
            bytesSent: bytesSent,
            reusedConnection: reusedConnection,
            message: message
        )
        failure.trust = trustFailure(code)
        failure.isAnswerLate = isAnswerLate
        failure.isUnprocessed = isTurnedAway && sendings == 1 && bytesSentBefore == 0 && !head.hasBegun
        return failure
    }

    private func trustFailure(_ code: Int32) -> TransferTrustFailure? {
        switch CURLcode(UInt32(code)) {
        case CURLE_PEER_FAILED_VERIFICATION:
            // libcurl checks the host name last.
            let isChainFine = judge?.presented?.verdict.isTrusted ?? false
            let cause: TransferTrustFailure.Cause =
                judge?.isRefusedByCheck ?? false ? .check : isChainFine ? .host : .chain
            return TransferTrustFailure(cause: cause, presented: judge?.presented)
        case CURLE_SSL_INVALIDCERTSTATUS:
            return TransferTrustFailure(cause: .stapledStatus, presented: judge?.presented)
        default: return nil
        }
    }

    private var bytesSent: Int64 { isWithoutSocket ? bytesSentBefore : bytesSentBefore + bytesSentNow }

    /// The number of bytes sent over the last connection.
    var bytesSentNow: Int64 {
        Int64(easy.long(CURLINFO_REQUEST_SIZE)) + easy.offset(CURLINFO_SIZE_UPLOAD_T)
    }

    var hasKeptBusy: Bool { if case .keptBusy = stop { true } else { false } }

    /// Both ends of the current connection, or of the last one.
    var ends: ConnectionEnds {
        ConnectionEnds(
            localPort: localPort,
            remotePort: easy.long(CURLINFO_PRIMARY_PORT),
            remoteAddress: easy.string(CURLINFO_PRIMARY_IP)
        )
    }

    private var localPort: Int { easy.long(CURLINFO_LOCAL_PORT) }

    var isReady: Bool { marks.requestReady != nil }

    private var reusedConnection: Bool { isReady && easy.long(CURLINFO_NUM_CONNECTS) == 0 }

    private var reachedPhase: TransferFailure.Phase {
        if head.hasBegun { return .response }
        if isReady { return isSent ? .response : .request }
        // CURLINFO_CONNECT_TIME stays 0 until the handshake is complete. The local port is known earlier.
        guard localPort > 0 else { return .connect }
        return url.isSecure ? .tls : .request
    }

    /// Whether the kernel has accepted the whole request on the last connection.
    var isSent: Bool {
        let count = easy.offset(CURLINFO_SIZE_UPLOAD_T)
        guard let length = feed.length else { return feed.hasEnded }
        return bytesSentNow > length && count >= length
    }

    private var metrics: TransferMetrics {
        var metrics = caller.metrics
        marks.fill(&metrics, easy, isReused: reusedConnection)
        metrics.fill(from: easy)
        metrics.reusedConnection = reusedConnection
        metrics.usedTLS = url.isSecure && isReady
        return metrics
    }
}

extension BodyFeed.Fault {
    /// libcurl's code for the fault.
    fileprivate var code: CURLcode {
        if case .notRewindable = self { CURLE_SEND_FAIL_REWIND } else { CURLE_READ_ERROR }
    }
}
