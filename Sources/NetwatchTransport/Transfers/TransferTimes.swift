internal import CNetwatchCurl

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
