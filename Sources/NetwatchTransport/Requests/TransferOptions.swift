internal import CNetwatchCurl

extension EasyHandle {
    /// Tells the handle everything about a request but its lists and callbacks.
    ///
    /// - Parameter acceptEncoding: The request's own.
    func apply(_ request: TransferRequest, acceptEncoding: String?) throws(TransferFailure) {
        try applyPolicy()
        try set(CURLOPT_URL, request.url)
        try applyMethod(of: request)
        try applyTimeouts(of: request)
        try apply(request.credentials)
        if let acceptEncoding {
            try set(CURLOPT_ACCEPT_ENCODING, acceptEncoding)
            // It cannot be changed any more when the head has come and says whether the body is coded.
            try set(CURLOPT_BUFFERSIZE, Inflow.encodedReadSize)
        }
        if let path = request.unixSocketPath { try set(CURLOPT_UNIX_SOCKET_PATH, path) }
        // See TransferRequest.allowsConnectionReuse.
        if !request.allowsConnectionReuse { try set(CURLOPT_FRESH_CONNECT, 1) }
    }

    /// What holds for every transfer.
    private func applyPolicy() throws(TransferFailure) {
        // Without it timeouts are made with SIGALRM, which belongs to the program.
        try set(CURLOPT_NOSIGNAL, 1)
        try allowHTTPOnly()
        // An empty text, unlike none, also keeps libcurl from reading http_proxy and its like.
        try set(CURLOPT_PROXY, "")
        // What is not HTTP then comes as a body without a head, so that a failure can name its first bytes. It is never
        // taken for an answer; see Transfer.receiveBody(_:).
        try set(CURLOPT_HTTP09_ALLOWED, 1)
        try set(CURLOPT_FOLLOWLOCATION, 0)
    }

    private func applyMethod(of request: TransferRequest) throws(TransferFailure) {
        let (method, body) = (request.method, request.body)
        if method == "HEAD" { return try set(CURLOPT_NOBODY, 1) }
        if request.isSentWithBody {
            // Without CURLOPT_POSTFIELDS the body is read by callback, and a length of -1 is unknown.
            try set(CURLOPT_POST, 1)
            try set(CURLOPT_POSTFIELDSIZE_LARGE, offset: (body.map(\.length) ?? 0) ?? -1)
        }
        if method != "GET" || body != nil { try set(CURLOPT_CUSTOMREQUEST, method) }
    }

    func applyTimeouts(of request: TransferRequest) throws(TransferFailure) {
        try set(CURLOPT_CONNECTTIMEOUT_MS, request.connectTimeout.positiveMilliseconds)
        if let total = request.totalTimeout { try set(CURLOPT_TIMEOUT_MS, total.positiveMilliseconds) }
        // For the idle timeout see Idleness.
    }

    private func apply(_ credentials: TransferCredentials?) throws(TransferFailure) {
        guard let credentials else { return }
        try set(CURLOPT_USERNAME, credentials.user)
        try set(CURLOPT_PASSWORD, credentials.password)
        try set(CURLOPT_HTTPAUTH, credentials.mask)
    }
}

extension TransferRequest {
    /// Whether the request has a body, be it one without bytes. RFC 9110 §8.6: these methods send
    /// `Content-Length: 0` rather than nothing.
    var isSentWithBody: Bool { body != nil || ["POST", "PUT", "PATCH"].contains(method) }

    /// The codings that the caller asks for and libcurl is to undo; `nil` undoes none. libcurl sends the text
    /// as it is.
    var acceptEncoding: String? {
        let values = headers.filter { $0.isNamed("Accept-Encoding") && !$0.isBlank }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// The caller's fields, and what keeps libcurl from adding some of its own.
    ///
    /// - Parameter decodes: Whether libcurl asks for encodings itself.
    func headerList(decodes: Bool) -> StringList {
        var list = StringList()
        for header in headers {
            // libcurl writes these itself.
            if header.isNamed("Content-Length") || decodes && header.isNamed("Accept-Encoding") { continue }
            // `Name:` alone would take the field away; the semicolon sends it without a value.
            list.append(header.isBlank ? header.name + ";" : header.name + ": " + header.value)
        }
        // Many servers do not answer it, and the body then waits for a second.
        if !headers.contains(where: { $0.isNamed("Expect") }) { list.append("Expect:") }
        // libcurl takes every body for a form.
        if !headers.contains(where: { $0.isNamed("Content-Type") }) { list.append("Content-Type:") }
        return list
    }
}

extension TransferRequest.Header {
    fileprivate var isBlank: Bool { value.utf8.allSatisfy { $0 == 0x20 || $0 == 0x09 } }
}

extension Duration {
    /// Whole milliseconds, rounded up, from 1 (0 means "never" to libcurl) to what fits 31 bits.
    var positiveMilliseconds: Int {
        let (seconds, attoseconds) = components
        guard seconds < Int64(Int32.max) / 1000 else { return Int(Int32.max) }
        let milliseconds = seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
        return Int(max(1, milliseconds))
    }
}
