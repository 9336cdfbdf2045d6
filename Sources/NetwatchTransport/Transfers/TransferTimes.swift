internal import CNetwatchCurl
internal import NetwatchEventLoop

/// The times at which a transfer reached its phases, relative to ``TransferMetrics/startedAt``.
///
/// libcurl's own times cannot be used for all phases. They begin when libcurl receives the transfer, and they are sums
/// if the request is sent again. So libcurl's time of the TLS handshake is read before the request is first sent, and
/// all later times are measured here. The engine measures the time of the connection, because libcurl receives a
/// connected socket.
struct TransferTimes {
    /// The time at which libcurl received the transfer.
    private var added: Duration
    private var isHandshakeRead = false
    private var tlsEnded: Duration?
    private(set) var requestReady: Duration?
    private(set) var requestSent: Duration?
    private(set) var firstByte: Duration?

    init(added: Duration) {
        self.added = added
    }

    /// Records that libcurl receives the transfer again with another connection.
    mutating func addAgain(at moment: Duration) {
        (added, isHandshakeRead, tlsEnded) = (moment, false, nil)
    }

    /// Records that a connection is ready and the request is about to be sent.
    ///
    /// - Parameter handshakeEnded: libcurl's time of the end of the TLS handshake; `nil` without TLS.
    mutating func requestBegins(at moment: Duration, handshakeEnded: Duration?) {
        if !isHandshakeRead { tlsEnded = handshakeEnded }
        isHandshakeRead = true
        requestReady = moment
        (requestSent, firstByte) = (nil, nil)
    }

    /// Whether the request has begun, and neither its end nor a response was recorded. If the server responds before
    /// the end of the request, the end has no time.
    var awaitsRequestEnd: Bool { requestReady != nil && requestSent == nil && firstByte == nil }

    /// Records that the whole request has been sent. Called only if ``awaitsRequestEnd``.
    mutating func requestEnds(at moment: Duration) {
        requestSent = moment
    }

    /// Records the arrival of the first byte of the response, which may belong to an interim response (1xx).
    mutating func responseBegins(at moment: Duration) {
        firstByte = moment
    }

    /// Records that nothing of the request has arrived at the server.
    mutating func requestWasNotSent() {
        (requestReady, requestSent) = (nil, nil)
    }

    func fill(_ metrics: inout TransferMetrics, _ handle: TransferHandle, isReused: Bool) {
        metrics.requestReady = requestReady
        metrics.requestSent = requestSent
        metrics.firstByte = firstByte
        guard !isReused else {
            metrics.connected = nil
            return
        }
        if metrics.connected == nil {
            metrics.connected = handle.time(CURLINFO_CONNECT_TIME_T).map { added + $0 }
        }
        metrics.tlsEnded = (tlsEnded ?? handle.time(CURLINFO_APPCONNECT_TIME_T)).map { added + $0 }
    }
}

extension TransferMetrics {
    /// Sets the values that libcurl provides: the addresses and ports of the connection, the HTTP version and the
    /// numbers of bytes.
    mutating func fill(from handle: TransferHandle) {
        localAddress = handle.string(CURLINFO_LOCAL_IP)
        localPort = Self.port(handle.long(CURLINFO_LOCAL_PORT))
        remoteAddress = handle.string(CURLINFO_PRIMARY_IP)
        remotePort = Self.port(handle.long(CURLINFO_PRIMARY_PORT))
        httpVersion = Self.name(ofVersion: handle.long(CURLINFO_HTTP_VERSION))
        offeredSchemes = TransferCredentials.Schemes(mask: handle.long(CURLINFO_HTTPAUTH_AVAIL))
        requestHeaderBytes = Int64(handle.long(CURLINFO_REQUEST_SIZE))
        requestBodyBytes = handle.offset(CURLINFO_SIZE_UPLOAD_T)
        responseHeaderBytes = Int64(handle.long(CURLINFO_HEADER_SIZE))
        responseBodyBytes = handle.offset(CURLINFO_SIZE_DOWNLOAD_T)
    }

    private static func port(_ value: Int) -> Int? {
        value > 0 ? value : nil
    }

    private static func name(ofVersion version: Int) -> String? {
        switch version {
        case CURL_HTTP_VERSION_1_0: "http/1.0"
        case CURL_HTTP_VERSION_1_1: "http/1.1"
        case CURL_HTTP_VERSION_2_0: "h2"
        case CURL_HTTP_VERSION_3: "h3"
        default: nil
        }
    }
}

/// A measurement of how long a transfer has neither sent nor received bytes.
///
/// libcurl's own check (`CURLOPT_LOW_SPEED_TIME`) measures speed instead. It aborts a response that delivers only a few
/// bytes from time to time, and tolerates a longer silence after a fast start. Therefore the engine counts the bytes at
/// intervals.
struct IdleTracker {
    /// The interval between checks. A timeout may be detected up to two intervals late.
    static let interval = Duration.seconds(1)
    /// The time without progress after which a transfer with a complete response ends; see
    /// ``Transfer/isStuckAfterResponse(at:readBytes:)``.
    static let stuckTimeout = Duration.seconds(1)

    /// The last check that found new bytes, and their number; `nil` before the first check, and while silence is
    /// allowed.
    private var lastChange: (time: BootInstant, bytes: Int64)?

    /// Records the number of bytes at a check, and compares the silence with the timeout.
    ///
    /// - Parameters:
    ///   - timeout: The maximum silence.
    ///   - now: The time of the check.
    ///   - bytes: The number of bytes transferred so far; `nil` while silence is allowed, which restarts the
    ///     measurement.
    /// - Returns: Whether no bytes were transferred for at least `timeout`.
    mutating func exceeds(_ timeout: Duration, at now: BootInstant, bytes: Int64?) -> Bool {
        guard let last = lastChange, last.bytes == bytes else {
            lastChange = bytes.map { (now, $0) }
            return false
        }
        return last.time.duration(to: now) >= timeout
    }
}

extension Transfer {
    /// Returns the error message for an exceeded timeout; `nil` if no timeout is exceeded. Sets ``isResponseLate`` if
    /// the response timeout is exceeded.
    func timeoutMessage(at now: BootInstant) -> String? {
        if let deadline, deadline <= now { return deadlineMessage(at: now) }
        let responseTimeout = currentResponseTimeout
        if let timeout = responseTimeout ?? request.idleTimeout, isIdle(for: timeout, at: now) {
            isResponseLate = responseTimeout != nil
            return isResponseLate
                ? "no response within \(timeout) of the request"
                : "no bytes were sent or received for \(timeout)"
        }
        guard bodyIsLate(at: now) else { return nil }
        return "the response body took longer than \(request.bodyTimeout ?? .zero)"
    }

    /// Returns whether the response is complete, and libcurl neither sends the rest of the request nor reads what the
    /// server sends.
    ///
    /// Over HTTP/2, libcurl 7.88.1 reads nothing more for a transfer when the number of bytes in `Content-Length` has
    /// arrived. If the server's window is exhausted, libcurl therefore finds neither a larger window nor a reset of the
    /// stream, and uses all available processor time until a timeout.
    ///
    /// - Parameter readBytes: Returns how many bytes of the connection have been read, if bytes wait to be read, and the
    ///   server's kernel has acknowledged all bytes that were sent. Otherwise returns `nil`: the server or the network
    ///   is slow.
    func isStuckAfterResponse(at now: BootInstant, readBytes: () -> UInt64?) -> Bool {
        let mayBeStuck =
            hasCompleteResponse && stop == nil && !isSent && flow.directions.isEmpty
            && handle.long(CURLINFO_HTTP_VERSION) == CURL_HTTP_VERSION_2_0
        return stuckTracker.exceeds(
            IdleTracker.stuckTimeout,
            at: now,
            bytes: mayBeStuck ? readBytes().map { currentBytesSent + Int64(clamping: $0) } : nil
        )
    }

    /// The next deadline of the transfer; `nil` for no limit.
    var deadline: BootInstant? {
        guard isConnecting else { return deadlines.end }
        return min(deadlines.connection, deadlines.end ?? deadlines.connection)
    }

    /// Whether libcurl has not sent the request yet over its connection, which may need a TLS handshake first.
    private var isConnecting: Bool { !isReady || hasNewConnection }

    private func deadlineMessage(at now: BootInstant) -> String {
        if let end = deadlines.end, end <= now {
            // Not the request's limit, from which the caller has subtracted the time of earlier transfers.
            return "the transfer was not complete within its total timeout"
        }
        return "the connection was not ready within \(request.connectTimeout)"
    }

    private func bodyIsLate(at now: BootInstant) -> Bool {
        guard let timeout = request.bodyTimeout, let start = output.headDelivered else { return false }
        return start.duration(to: now) >= timeout
    }

    /// The response timeout, if it applies now: the whole request was sent and the head has not been delivered. `nil`
    /// at other times.
    private var currentResponseTimeout: Duration? {
        request.responseTimeout.flatMap { isReady && isSent && !output.hasDeliveredHead ? $0 : nil }
    }

    /// Whether no bytes were transferred for `timeout`. The time in which a body source has no data counts; the time of
    /// a pause does not.
    private func isIdle(for timeout: Duration, at now: BootInstant) -> Bool {
        idleTracker.exceeds(timeout, at: now, bytes: isReady && paused.isEmpty ? wireBytes : nil)
    }

    /// The number of bytes of all heads and bodies, in both directions.
    private var wireBytes: Int64 {
        Int64(handle.long(CURLINFO_REQUEST_SIZE)) + handle.offset(CURLINFO_SIZE_UPLOAD_T)
            + Int64(handle.long(CURLINFO_HEADER_SIZE)) + handle.offset(CURLINFO_SIZE_DOWNLOAD_T)
    }
}
