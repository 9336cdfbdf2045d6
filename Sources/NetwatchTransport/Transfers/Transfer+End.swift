internal import CNetwatchCurl
internal import Glibc
internal import NetwatchEventLoop

extension Transfer {
    /// Reports the end. The handle was removed from its multi handle, and nothing is delivered afterwards.
    func finish(_ code: CURLcode) {
        // When the watchdog shuts the connection down, libcurl may take this for the regular end of the response.
        guard code == CURLE_OK, !isAborted else { return finish(failure(of: code)) }
        deliverPendingHead()
        finish(hasDeliveredHead ? nil : headTruncated)
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
        precondition(!isFinished, "the transfer has already ended")
        addProgress()
        isFinished = true
        reporter.end(failure, metrics, after: events.take())
    }

    private func failure(of code: CURLcode) -> TransferFailure {
        stop.map { failure(of: $0) } ?? curlFailure(of: code)
    }

    /// Returns the failure of a transfer that netwatch made libcurl stop.
    private func failure(of stop: Stop) -> TransferFailure {
        switch stop {
        case .headTooLarge: return headTooLarge
        case .switchedProtocol:
            return invalidResponse("the server switched to another protocol without being asked")
        case .bodyTooLarge:
            let message = "the response body is longer than \(request.maximumResponseBodyBytes ?? 0) bytes"
            return failure(code: Int32(CURLE_FILESIZE_EXCEEDED.rawValue), message: message)
        case .bodyExpands: return bodyExpands
        case .sentTooOften:
            let message = "the request was sent \(Self.maximumSendCount) times without a final response"
            return failure(code: Int32(CURLE_LOGIN_DENIED.rawValue), phase: .response, message: message)
        case .bodyFailed(let fault):
            return failure(code: Int32(fault.code.rawValue), errno: fault.errno, message: fault.message)
        case .resendForbidden: return resendFailure
        case .notHTTP(let text): return invalidResponse("the response is not HTTP: \(text)")
        case .abortedByWatchdog(let bytes):
            let message = "the server sends frames without data, \(bytes) bytes since the last check"
            return invalidResponse(message, phase: .response)
        }
    }

    /// Returns the failure that libcurl has reported.
    private func curlFailure(of code: CURLcode) -> TransferFailure {
        // libcurl reports a single header line of 100 KiB as if it had run out of memory.
        if code == CURLE_OUT_OF_MEMORY, reachedPhase == .response {
            if !head.isComplete { return headTooLarge }
            // libcurl also keeps at most 64 MiB of decoded data when a pause interrupts the decoding.
            if request.acceptEncoding != nil { return bodyExpands }
        }
        let text = message.text ?? String(cString: curl_easy_strerror(code))
        // libcurl reports this as a receive failure, like a reset.
        if code == CURLE_RECV_ERROR, text.hasSuffix("in chunked-encoding") { return invalidResponse(text) }
        // The status line has an unknown version (HTTP/3.9) or a status that is not a number. libcurl does not expose
        // its bytes.
        if code == CURLE_UNSUPPORTED_PROTOCOL, isReady {
            return invalidResponse("the response is not HTTP: \(text)")
        }
        let errno = errno(of: code)
        // libcurl's message is only "Couldn't connect to server", whatever the system error was.
        let why = code == CURLE_COULDNT_CONNECT && errno != 0 ? ": \(errnoDescription(errno))" : ""
        return failure(code: Int32(code.rawValue), errno: errno, message: text + why)
    }

    private func invalidResponse(
        _ message: String,
        phase: TransferFailure.Phase? = nil
    ) -> TransferFailure {
        failure(code: Int32(CURLE_WEIRD_SERVER_REPLY.rawValue), phase: phase, message: message)
    }

    /// The failure of a request that libcurl tried to send again.
    ///
    /// On a new connection and without credentials, libcurl does so when the server has refused the HTTP/2 stream
    /// (`REFUSED_STREAM`, or a `GOAWAY` that names an earlier stream as the last, RFC 9113 §8.7). In that case the
    /// server did not process the request.
    private var resendFailure: TransferFailure {
        let code = Int32(CURLE_GOT_NOTHING.rawValue)
        guard request.credentials == nil, !request.allowsConnectionReuse else {
            let message = "the connection ended before the response, and the request must not be sent twice"
            return failure(code: code, phase: .response, message: message)
        }
        var failure = failure(
            code: code,
            phase: .response,
            message: "the server refused the HTTP/2 stream and did not process the request"
        )
        // Over HTTP/1.1, a request that the server had sent back may have been processed.
        failure.isUnprocessed = sendCount == 1
        return failure
    }

    private func errno(of code: CURLcode) -> CInt {
        // libcurl does not ask why the callback returned no socket.
        if code == CURLE_COULDNT_CONNECT, let socketFailure { return socketFailure.errno }
        let errno = CInt(easy.long(CURLINFO_OS_ERRNO))
        // libcurl takes EAGAIN of connect(2) for a connection that is being made, and then finds no error. A unix
        // socket has neither: more connections wait than the server accepts.
        let isFull = code == CURLE_COULDNT_CONNECT && errno == 0 && request.unixSocketPath != nil
        return isFull ? EAGAIN : errno
    }

    private var bodyExpands: TransferFailure {
        let message =
            "\(ReceiveLimiter.encodedReadSize) bytes of the response body decode to more than \(ReceiveLimiter.readLimit) bytes"
        return failure(code: Int32(CURLE_BAD_CONTENT_ENCODING.rawValue), message: message)
    }

    /// The failure for a head that ends early. libcurl takes such a head for a complete one.
    private var headTruncated: TransferFailure {
        let code = Int32(CURLE_PARTIAL_FILE.rawValue)
        return failure(code: code, message: "the connection ended before the response head was complete")
    }

    /// The code is `CURLE_TOO_LARGE`, which is not in Debian 12's header yet.
    private var headTooLarge: TransferFailure {
        failure(code: 100, message: "the response head is longer than \(HeadParser.maximumBytes) bytes")
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
        failure.isUnprocessed = isRefusedByGoAway && sendCount == 1 && earlierBytesSent == 0 && !head.hasBegun
        return failure
    }

    private func trustFailure(_ code: Int32) -> TransferTrustFailure? {
        switch CURLcode(UInt32(code)) {
        case CURLE_PEER_FAILED_VERIFICATION:
            // libcurl checks the host name last.
            let isChainFine = evaluator?.presented?.verdict.isTrusted ?? false
            let cause: TransferTrustFailure.Cause =
                evaluator?.isRefusedByCheck ?? false ? .check : isChainFine ? .host : .chain
            return TransferTrustFailure(cause: cause, presented: evaluator?.presented)
        case CURLE_SSL_INVALIDCERTSTATUS:
            return TransferTrustFailure(cause: .stapledStatus, presented: evaluator?.presented)
        default: return nil
        }
    }

    private var bytesSent: Int64 { lacksConnection ? earlierBytesSent : earlierBytesSent + currentBytesSent }

    /// The number of bytes sent over the last connection.
    var currentBytesSent: Int64 {
        Int64(easy.long(CURLINFO_REQUEST_SIZE)) + easy.offset(CURLINFO_SIZE_UPLOAD_T)
    }

    var isAborted: Bool { if case .abortedByWatchdog = stop { true } else { false } }

    /// Both ends of the current connection, or of the last one.
    var ends: ConnectionEnds {
        ConnectionEnds(
            localPort: localPort,
            remotePort: easy.long(CURLINFO_PRIMARY_PORT),
            remoteAddress: easy.string(CURLINFO_PRIMARY_IP)
        )
    }

    private var localPort: Int { easy.long(CURLINFO_LOCAL_PORT) }

    var isReady: Bool { times.requestReady != nil }

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
        guard let length = bodyReader.length else { return bodyReader.hasEnded }
        return currentBytesSent > length && count >= length
    }

    private var metrics: TransferMetrics {
        var metrics = reporter.metrics
        times.fill(&metrics, easy, isReused: reusedConnection)
        metrics.fill(from: easy)
        metrics.reusedConnection = reusedConnection
        metrics.usedTLS = url.isSecure && isReady
        return metrics
    }
}

extension TransferBodyReader.Fault {
    /// libcurl's code for the fault.
    fileprivate var code: CURLcode {
        if case .notRewindable = self { CURLE_SEND_FAIL_REWIND } else { CURLE_READ_ERROR }
    }
}
