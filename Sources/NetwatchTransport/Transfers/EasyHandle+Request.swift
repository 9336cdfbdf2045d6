internal import CNetwatchCurl
internal import Glibc

extension EasyHandle {
    /// Sets all options of a request except its lists and callbacks.
    ///
    /// - Parameter acceptEncoding: The request's `acceptEncoding`.
    func apply(_ request: TransferRequest, acceptEncoding: String?) throws(TransferFailure) {
        try applyPolicy()
        try set(CURLOPT_URL, request.url)
        try applyMethod(of: request)
        try applyTimeouts(of: request)
        try apply(request.credentials)
        if let acceptEncoding {
            try set(CURLOPT_ACCEPT_ENCODING, acceptEncoding)
            // The size cannot be changed later, when the head has arrived and shows whether the body is encoded.
            try set(CURLOPT_BUFFERSIZE, ReceiveLimiter.encodedReadSize)
        }
        if let path = request.unixSocketPath { try set(CURLOPT_UNIX_SOCKET_PATH, path) }
        // See TransferRequest.allowsConnectionReuse.
        if !request.allowsConnectionReuse { try set(CURLOPT_FRESH_CONNECT, 1) }
    }

    /// Sets the options for server trust and for HTTP versions over TLS.
    func applyTLS(of request: TransferRequest) throws(TransferFailure) {
        if TransferCapabilities.current.supportsHTTP2 {
            try set(CURLOPT_STREAM_WEIGHT, request.streamWeight)
        }
        try apply(request.trust)
    }

    /// Sets the options that are the same for every transfer.
    private func applyPolicy() throws(TransferFailure) {
        // Otherwise libcurl uses SIGALRM for timeouts, but that signal belongs to the program.
        try set(CURLOPT_NOSIGNAL, 1)
        try allowHTTPOnly()
        // An empty string, unlike none, also prevents libcurl from reading http_proxy and similar variables.
        try set(CURLOPT_PROXY, "")
        // A response that is not HTTP then arrives as a body without a head, so that the failure can quote its first
        // bytes. It is never accepted as a response; see Transfer.receiveBody(_:).
        try set(CURLOPT_HTTP09_ALLOWED, 1)
        try set(CURLOPT_FOLLOWLOCATION, 0)
    }

    private func applyMethod(of request: TransferRequest) throws(TransferFailure) {
        let (method, body) = (request.method, request.body)
        if method == "HEAD" { return try set(CURLOPT_NOBODY, 1) }
        if request.isSentWithBody {
            // Without CURLOPT_POSTFIELDS the body is read by callback. A length of -1 means unknown.
            try set(CURLOPT_POST, 1)
            try set(CURLOPT_POSTFIELDSIZE_LARGE, offset: (body.map(\.length) ?? 0) ?? -1)
        }
        if method != "GET" || body != nil { try set(CURLOPT_CUSTOMREQUEST, method) }
    }

    func applyTimeouts(of request: TransferRequest) throws(TransferFailure) {
        try set(CURLOPT_CONNECTTIMEOUT_MS, request.connectTimeout.positiveMilliseconds)
        if let total = request.totalTimeout { try set(CURLOPT_TIMEOUT_MS, total.positiveMilliseconds) }
        // The idle timeout is checked separately; see IdleTracker.
    }

    private func apply(_ credentials: TransferCredentials?) throws(TransferFailure) {
        guard let credentials else { return }
        try set(CURLOPT_USERNAME, credentials.user)
        try set(CURLOPT_PASSWORD, credentials.password)
        try set(CURLOPT_HTTPAUTH, credentials.mask)
    }
}

extension TransferRequest {
    /// Whether the request is sent with a body, which may be empty. These methods send `Content-Length: 0` without a
    /// body (RFC 9110 §8.6).
    var isSentWithBody: Bool { body != nil || ["POST", "PUT", "PATCH"].contains(method) }

    /// The encodings that the caller accepts and libcurl must decode; `nil` decodes none. libcurl sends the text
    /// unchanged.
    var acceptEncoding: String? {
        let values = headers.filter { $0.isNamed("Accept-Encoding") && !$0.isBlank }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// Returns the caller's header fields, and entries that keep libcurl from adding its own fields.
    ///
    /// - Parameter decodes: Whether libcurl sends `Accept-Encoding` itself.
    func headerList(decodes: Bool) -> StringList {
        var list = StringList()
        for header in headers {
            // libcurl writes these fields itself.
            if header.isNamed("Content-Length") || decodes && header.isNamed("Accept-Encoding") { continue }
            // `Name:` would remove the field; `Name;` sends it with an empty value.
            list.append(header.isBlank ? header.name + ";" : header.name + ": " + header.value)
        }
        // Many servers ignore Expect, and libcurl then delays the body for a second.
        if !headers.contains(where: { $0.isNamed("Expect") }) { list.append("Expect:") }
        // libcurl would otherwise declare every body as a form.
        if !headers.contains(where: { $0.isNamed("Content-Type") }) { list.append("Content-Type:") }
        return list
    }
}

extension TransferRequest {
    /// The HTTP/2 stream weight: 1 to 256 (RFC 7540 §5.3.2). The default is 16, and each 1/8 of urgency doubles or
    /// halves it.
    fileprivate var streamWeight: Int {
        Int(exp2(urgency * 8).rounded())
    }
}

extension TransferRequest.Header {
    fileprivate var isBlank: Bool { value.utf8.allSatisfy { $0 == 0x20 || $0 == 0x09 } }
}

extension Duration {
    /// The duration in whole milliseconds, rounded up. At least 1, because 0 means "never" to libcurl; at most
    /// `Int32.max`.
    var positiveMilliseconds: Int {
        let (seconds, attoseconds) = components
        guard seconds < Int64(Int32.max) / 1000 else { return Int(Int32.max) }
        let milliseconds = seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
        return Int(max(1, milliseconds))
    }
}
