internal import CNetwatchCurl
internal import Glibc
internal import NetwatchEventLoop

extension Transfer {
    /// Reports the result of libcurl as the end of the transfer. The caller must have removed the easy handle from its
    /// multi handle. No event follows.
    func finish(_ code: CURLcode) {
        // If the watchdog has shut down the connection, libcurl may have taken that for the regular end of the
        // response.
        guard code == CURLE_OK && !isAborted || isOnlyRequestRefused(by: code) else {
            return finish(failure(of: code))
        }
        deliverPendingHead()
        guard output.hasDeliveredHead else { return finish(headTruncated) }
        finish(decoder.flatMap { $0.isComplete ? nil : bodyTruncated($0.codings) })
    }

    /// Reports an end that netwatch caused, not libcurl, such as a cancellation or a timeout.
    func finish(_ code: CURLcode, errno: CInt = 0, message: String) {
        finish(failure(code: Int32(code.rawValue), errno: errno, message: message))
    }

    /// Reports the end of a transfer that libcurl does not run, because it needed another connection. The connection
    /// could not be established, or the program has not accepted the server.
    func finish(unconnected: TransferFailure) {
        // The request may have reached the server over an earlier connection. The phase must show that.
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
        reporter.end(failure, metrics, after: output.take())
    }

    /// Returns whether a later transfer may use the handle. libcurl has ended this transfer with `code`, and the handle
    /// was removed from its multi handle.
    ///
    /// This is the case after one exchange over HTTP/1.1 without an error. Everything else may leave a state in the
    /// handle that affects later transfers; see ``EasyHandle``.
    func leavesCleanHandle(after code: CURLcode) -> Bool {
        code == CURLE_OK && stop == nil && sending.isFirst && handle.shape != nil
            && handle.long(CURLINFO_HTTP_VERSION) == CURL_HTTP_VERSION_1_1
            && handle.long(CURLINFO_OS_ERRNO) == 0
    }

    /// Returns whether the error with which libcurl has ended the transfer shows that the version of HTTP does not work
    /// with the origin. The other version may work.
    func showsFailedVersion(after code: CURLcode) -> Bool {
        guard url.isSecure else { return false }
        guard context.usesHTTP1 else { return violatesHTTP2(code) }
        // A server without HTTP/1.1 refuses the handshake with an alert (RFC 7301 §3.2), or speaks HTTP/2 anyway. Any
        // other failure of a handshake says nothing about the version. Only the message has OpenSSL's code for the
        // alert, SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL; before 3.0.14 it has no text for the code.
        if case .notHTTP = stop { return true }
        return code == CURLE_SSL_CONNECT_ERROR && handle.errorMessage?.contains(":0A000460:") ?? false
    }

    /// Returns whether a stream has ended with `PROTOCOL_ERROR` (RFC 9113 §7). Usually libcurl has ended it, because
    /// the response contains a field that HTTP/2 forbids. libcurl names the error only in its message.
    private func violatesHTTP2(_ code: CURLcode) -> Bool {
        code == CURLE_HTTP2_STREAM && stop == nil
            && handle.errorMessage?.contains("PROTOCOL_ERROR") ?? false
    }

    /// Returns whether libcurl's error only concerns the rest of the request, because the response is complete.
    ///
    /// A server that does not need the request's body may send the response, and then reset the stream with `NO_ERROR`.
    /// The response must not be discarded because of that (RFC 9113 §8.1). libcurl 7.88.1 reports an error if it has
    /// not sent the whole body by then. Its message is empty in this case, and names every other code.
    private func isOnlyRequestRefused(by code: CURLcode) -> Bool {
        code == CURLE_HTTP2_STREAM && stop == nil && hasCompleteResponse && handle.errorMessage == nil
    }

    /// Whether the response to the last request is final and its whole body was accepted. `false` if the head does not
    /// determine the length of the body: libcurl does not report whether the server has ended the stream or reset it.
    var hasCompleteResponse: Bool {
        output.hasDeliveredHead && head.isComplete && head.bodyLength == acceptedBodyBytes
    }

    private func failure(of code: CURLcode) -> TransferFailure {
        stop.map { failure(of: $0) } ?? curlFailure(of: code)
    }

    /// Returns the failure of a transfer that netwatch made libcurl stop.
    private func failure(of stop: Stop) -> TransferFailure {
        switch stop {
        case .headTooLarge: return headTooLarge
        case .ambiguousLength:
            return invalidResponse("the response has Content-Length fields with different values")
        case .unsupportedTransferCoding(let codings):
            return undecodable("the response has a transfer coding that was not requested: \(codings)")
        case .switchedProtocol:
            return invalidResponse("the server switched to another protocol without being asked")
        case .bodyTooLarge:
            let message = "the response body is longer than \(request.maximumResponseBodyBytes ?? 0) bytes"
            return failure(code: Int32(CURLE_FILESIZE_EXCEEDED.rawValue), message: message)
        case .bodyExpands: return bodyExpands
        case .undecodable(.unsupported(let codings)):
            return undecodable("the response body has an unsupported content coding: \(codings)")
        case .undecodable(.invalid(let codings)):
            return undecodable("the response body is not valid \(codings) data")
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
        case .certificatesVary:
            let count = questionCount + 1
            let message = "the server presented different certificates in each of \(count) handshakes"
            return failure(code: Int32(CURLE_PEER_FAILED_VERIFICATION.rawValue), message: message)
        }
    }

    /// Returns the failure for an error that libcurl has reported.
    private func curlFailure(of code: CURLcode) -> TransferFailure {
        // libcurl reports a header line of 100 KiB or more as a lack of memory.
        if code == CURLE_OUT_OF_MEMORY, reachedPhase == .response, !head.isComplete { return headTooLarge }
        let text = TLSMessage.inWords(handle.errorMessage ?? String(cString: curl_easy_strerror(code)))
        // libcurl uses the code of a connection reset for an invalid chunk.
        if code == CURLE_RECV_ERROR, text.hasSuffix("in chunked-encoding") { return invalidResponse(text) }
        // After the request was sent, this code means a status line with an unknown version (HTTP/3.9) or with a status
        // that is not a number. libcurl does not expose the bytes of the line.
        if code == CURLE_UNSUPPORTED_PROTOCOL, isReady {
            return invalidResponse("the response is not HTTP: \(text)")
        }
        if violatesHTTP2(code) {
            let message = "the server violates HTTP/2, the next request uses HTTP/1.1: \(text)"
            return failure(code: Int32(code.rawValue), message: message)
        }
        // libcurl does not know that netwatch has refused the stapled response.
        if code == CURLE_SSL_CONNECT_ERROR, evaluator?.isRefusedByStapledStatus == true {
            let message = "the stapled response is missing or does not report the certificate as good"
            return failure(code: Int32(CURLE_SSL_INVALIDCERTSTATUS.rawValue), message: message)
        }
        let errno = errno(of: code)
        // libcurl's message is always "Couldn't connect to server", so the system's error is added.
        let why = code == CURLE_COULDNT_CONNECT && errno != 0 ? ": \(errnoDescription(errno))" : ""
        return failure(code: Int32(code.rawValue), errno: errno, message: text + why)
    }

    private func invalidResponse(
        _ message: String,
        phase: TransferFailure.Phase? = nil
    ) -> TransferFailure {
        failure(code: Int32(CURLE_WEIRD_SERVER_REPLY.rawValue), phase: phase, message: message)
    }

    /// The failure of a request that libcurl tried to send again although it must not be sent twice.
    ///
    /// For a request on a new connection and without credentials, there is only one reason: the server has refused the
    /// HTTP/2 stream, and so has not processed the request (RFC 9113 §8.7). The server does this with `REFUSED_STREAM`,
    /// or with a `GOAWAY` that names an earlier stream as the last one.
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
        // If the request was sent a second time, the server has required HTTP/1.1. HTTP/1.1 has no streams to refuse,
        // so the server may have processed the request.
        failure.isUnprocessed = sending.count == 1
        return failure
    }

    private func errno(of code: CURLcode) -> CInt {
        // libcurl does not know why our callback returned no socket.
        if code == CURLE_COULDNT_CONNECT, let socketFailure { return socketFailure.errno }
        let errno = CInt(handle.long(CURLINFO_OS_ERRNO))
        // A missing error number means EAGAIN: the backlog of the server's unix socket is full. libcurl takes EAGAIN
        // from connect(2) for a connection in progress, and then finds no error on the socket.
        let isFull = code == CURLE_COULDNT_CONNECT && errno == 0 && request.unixSocketPath != nil
        return isFull ? EAGAIN : errno
    }

    private var bodyExpands: TransferFailure {
        let (encoded, limit) = (ReceiveLimiter.encodedPartSize, ReceiveLimiter.partLimit)
        return undecodable("\(encoded) bytes of the response body decode to more than \(limit) bytes")
    }

    private func undecodable(_ message: String) -> TransferFailure {
        failure(code: Int32(CURLE_BAD_CONTENT_ENCODING.rawValue), message: message)
    }

    /// The failure for a body that is complete for HTTP, but not for its content codings.
    private func bodyTruncated(_ codings: String) -> TransferFailure {
        let code = Int32(CURLE_PARTIAL_FILE.rawValue)
        return failure(code: code, message: "the response body ended before its \(codings) data was complete")
    }

    /// The failure for a connection that ended within the head. libcurl takes such a head for a complete one.
    private var headTruncated: TransferFailure {
        let code = Int32(CURLE_PARTIAL_FILE.rawValue)
        return failure(code: code, message: "the connection ended before the response head was complete")
    }

    /// The failure for a head that exceeds the limit. Its code is `CURLE_TOO_LARGE`, which the header of Debian 12 does
    /// not define yet.
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
        failure.isResponseLate = isResponseLate
        failure.isUnprocessed = sending.isUnprocessed && !head.hasBegun
        return failure
    }

    private func trustFailure(_ code: Int32) -> TransferTrustFailure? {
        switch CURLcode(UInt32(code)) {
        case CURLE_PEER_FAILED_VERIFICATION:
            // libcurl checks the host name last. If the chain is trusted, only the name can be wrong.
            let isChainFine = evaluator?.presented?.verdict.isTrusted ?? false
            let cause: TransferTrustFailure.Cause =
                evaluator?.isRefusedByCheck ?? false ? .check : isChainFine ? .host : .chain
            return TransferTrustFailure(cause: cause, presented: evaluator?.presented)
        case CURLE_SSL_INVALIDCERTSTATUS:
            return TransferTrustFailure(cause: .stapledStatus, presented: evaluator?.presented)
        default: return nil
        }
    }

    private var bytesSent: Int64 {
        sending.earlierBytes + (sending.lacksConnection ? 0 : currentBytesSent)
    }

    /// The number of bytes sent over the last connection.
    var currentBytesSent: Int64 {
        Int64(handle.long(CURLINFO_REQUEST_SIZE)) + handle.offset(CURLINFO_SIZE_UPLOAD_T)
    }

    var isAborted: Bool { if case .abortedByWatchdog = stop { true } else { false } }

    /// The local port, and the remote address and port, of the current connection. If there is none, they are the
    /// values of the last connection.
    var ends: ConnectionEnds {
        ConnectionEnds(
            localPort: localPort,
            remotePort: handle.long(CURLINFO_PRIMARY_PORT),
            remoteAddress: handle.string(CURLINFO_PRIMARY_IP)
        )
    }

    var localPort: Int { handle.long(CURLINFO_LOCAL_PORT) }

    var isReady: Bool { times.requestReady != nil }

    private var reusedConnection: Bool { isReady && handle.long(CURLINFO_NUM_CONNECTS) == 0 }

    private var reachedPhase: TransferFailure.Phase {
        if head.hasBegun { return .response }
        if isReady { return isSent ? .response : .request }
        // The local port shows that the transfer is connected. CURLINFO_CONNECT_TIME cannot show it, because it stays 0
        // until the handshake is complete.
        guard localPort > 0 else { return .connect }
        return url.isSecure ? .tls : .request
    }

    /// Whether the kernel has accepted the whole request on the last connection.
    var isSent: Bool {
        let count = handle.offset(CURLINFO_SIZE_UPLOAD_T)
        guard let length = bodyReader.length else { return bodyReader.hasEnded }
        return currentBytesSent > length && count >= length
    }

    private var metrics: TransferMetrics {
        var metrics = reporter.metrics
        metrics.reusedConnection = reusedConnection
        times.fill(&metrics, handle, isReused: metrics.reusedConnection)
        metrics.fill(from: handle)
        metrics.usedTLS = url.isSecure && isReady
        return metrics
    }
}

extension TransferBodyReader.Fault {
    /// libcurl's error code for the fault.
    fileprivate var code: CURLcode {
        if case .notRewindable = self { CURLE_SEND_FAIL_REWIND } else { CURLE_READ_ERROR }
    }
}

// The evaluation of the server's certificates.

extension Transfer {
    /// The maximum number of questions to the program for one transfer. Further ones are needed only if the server
    /// presents other certificates in each handshake.
    static let maximumQuestionCount = 4

    func evaluateHandshakes(of connection: OpaquePointer) -> CURLcode {
        let evaluator = TrustEvaluator(context.trust, host: url.bareHost, accepted: acceptedServer)
        self.evaluator = evaluator
        return evaluator.attach(to: connection) ? CURLE_OK : CURLE_OUT_OF_MEMORY
    }

    /// The question that the program must answer before the transfer can be added again; `nil` if there is none.
    var question: TrustQuestion? { evaluator?.question }

    /// Returns whether the transfer can be added again after the program has answered ``question``. If it cannot,
    /// because the server presents other certificates each time, this reason is recorded as ``stop``.
    func mayAskProgram(after code: CURLcode) -> Bool {
        guard code == CURLE_PEER_FAILED_VERIFICATION, question != nil, stop == nil else { return false }
        guard questionCount < Self.maximumQuestionCount else {
            stop = .certificatesVary
            return false
        }
        questionCount += 1
        sending.loseConnection(bytes: currentBytesSent)
        return true
    }

    /// Records that the program has accepted the server. The next handshake succeeds if the server presents the same
    /// certificates.
    func accept(_ server: PresentedTrust) {
        acceptedServer = server
        evaluator = nil
    }
}

/// The ports and the address that identify a TCP connection among the open ones. An unknown value is 0 or `nil`.
struct ConnectionEnds: Equatable, Sendable {
    let localPort: Int
    let remotePort: Int
    let remoteAddress: String?
}
