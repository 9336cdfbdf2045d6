internal import CNetwatchCurl
internal import Glibc

extension EasyHandle {
    /// Sets the options that are equal for all transfers of a ``TransferHandle/Shape``, except string lists, TLS
    /// options and callbacks.
    func apply(_ request: TransferRequest) throws(TransferFailure) {
        try applyPolicy()
        try applyMethod(of: request)
        try apply(request.credentials)
        if let path = request.unixSocketPath { try set(CURLOPT_UNIX_SOCKET_PATH, exact: path) }
    }

    /// Sets the options for server trust and for HTTP versions over TLS.
    ///
    /// - Parameter usesHTTP1: Whether to use HTTP/1.1. Default of libcurl: HTTP/2 if the server selects it (ALPN).
    func applyTLS(of request: TransferRequest, usesHTTP1: Bool) throws(TransferFailure) {
        if usesHTTP1 {
            try set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
        } else if TransferCapabilities.current.supportsHTTP2 {
            try set(CURLOPT_STREAM_WEIGHT, request.streamWeight)
        }
        try apply(request.trust)
    }

    /// Sets the options that are the same for every transfer.
    private func applyPolicy() throws(TransferFailure) {
        // Without this option, libcurl uses SIGALRM for timeouts, but that signal belongs to the program.
        try set(CURLOPT_NOSIGNAL, 1)
        try allowHTTPOnly()
        // An empty string disables proxies. Without this option, libcurl would read http_proxy and similar variables.
        try set(CURLOPT_PROXY, "")
        // The maximum, because the engine checks all time limits; see `TransferDeadlines`. With 0, libcurl would use
        // its own limit of 300 s.
        try set(CURLOPT_CONNECTTIMEOUT_MS, Int(Int32.max))
        // libcurl then delivers a response that is not HTTP as a body without a head, so that the failure can quote its
        // first bytes. `Transfer.receiveBody(_:)` turns each such body into a failure.
        try set(CURLOPT_HTTP09_ALLOWED, 1)
        try set(CURLOPT_FOLLOWLOCATION, 0)
    }

    private func applyMethod(of request: TransferRequest) throws(TransferFailure) {
        let (method, body) = (request.method, request.body)
        if method == "HEAD" { return try set(CURLOPT_NOBODY, 1) }
        if request.isSentWithBody {
            // Without CURLOPT_POSTFIELDS, libcurl gets the body from the read callback. A length of -1 means unknown.
            try set(CURLOPT_POST, 1)
            try set(CURLOPT_POSTFIELDSIZE_LARGE, offset: (body.map(\.length) ?? 0) ?? -1)
        }
        if method != "GET" || body != nil { try set(CURLOPT_CUSTOMREQUEST, method) }
    }

    private func apply(_ credentials: TransferCredentials?) throws(TransferFailure) {
        guard let credentials else { return }
        try set(CURLOPT_USERNAME, credentials.user)
        try set(CURLOPT_PASSWORD, credentials.password)
        try set(CURLOPT_HTTPAUTH, credentials.mask)
    }
}

extension TransferRequest {
    /// Whether the request is sent with a body, which may be empty. POST, PUT and PATCH always are: without a body they
    /// send `Content-Length: 0` (RFC 9110 §8.6).
    var isSentWithBody: Bool { body != nil || ["POST", "PUT", "PATCH"].contains(method) }

    /// Whether the response body is decoded: the caller has set `Accept-Encoding`.
    var decodesBody: Bool { headers.contains(where: \.acceptsEncoding) }

    /// Returns the caller's header fields for `CURLOPT_HTTPHEADER`, with entries that keep libcurl from adding its own
    /// fields. The fields that set `Accept-Encoding` become one, with their values unchanged.
    func headerList() -> StringList {
        var list = StringList()
        let encodings = headers.filter(\.acceptsEncoding).map(\.value)
        let acceptEncoding = encodings.isEmpty ? nil : encodings.joined(separator: ", ")
        if let acceptEncoding { list.append("Accept-Encoding: \(acceptEncoding)") }
        for header in headers {
            // libcurl writes this field itself.
            if header.isNamed("Content-Length") { continue }
            if acceptEncoding != nil, header.isNamed("Accept-Encoding") { continue }
            // `Name:` would remove the field; `Name;` sends it with an empty value.
            let line = header.isBlank ? header.name + ";" : header.name + ": " + header.value
            list.append(line, isExact: header.isExact)
        }
        guard isSentWithBody else { return list }
        // libcurl would add `Expect: 100-continue`. Many servers ignore it, and libcurl then delays the body for a
        // second.
        if !headers.contains(where: { $0.isNamed("Expect") }) { list.append("Expect:") }
        // libcurl would add `Content-Type: application/x-www-form-urlencoded` to every body.
        if !headers.contains(where: { $0.isNamed("Content-Type") }) { list.append("Content-Type:") }
        return list
    }
}

extension TransferRequest {
    /// The HTTP/2 stream weight, from 1 to 256 (RFC 7540 §5.3.2). An urgency of 0.5 gives the protocol's default, 16.
    /// Each 1/8 of urgency above or below doubles or halves the weight.
    var streamWeight: Int {
        Int(exp2(urgency * 8).rounded())
    }
}

extension TransferRequest.Header {
    fileprivate var acceptsEncoding: Bool { isNamed("Accept-Encoding") && !isBlank }

    fileprivate var isBlank: Bool { value.utf8.allSatisfy { $0 == 0x20 || $0 == 0x09 } }
}

extension EasyHandle {
    /// Sets the options for server trust and for the client's certificate.
    func apply(_ trust: TransferTrust) throws(TransferFailure) {
        // The server presents no certificates when a session is resumed, so the trust checks would be skipped.
        try set(CURLOPT_SSL_SESSIONID_CACHE, 0)
        // libcurl calls the verify callback only if it verifies the peer.
        try set(CURLOPT_SSL_VERIFYPEER, trust.anchors != nil || trust.check != nil ? 1 : 0)
        try set(CURLOPT_SSL_VERIFYHOST, trust.checksHost ? 2 : 0)
        try set(CURLOPT_SSLVERSION, (trust.minimumVersion ?? .standardMinimum).option)
        if trust.requiresStapledStatus { try set(CURLOPT_SSL_VERIFYSTATUS, 1) }
        switch trust.anchors {
        case .system, nil: try useSystemAnchors()
        case .only(let pem): try use(anchors: pem)
        }
        if let identity = trust.identity { try apply(identity) }
    }

    /// Makes libcurl accept the system's certificate authorities.
    ///
    /// libcurl (since 7.87) caches the parsed file of authorities for all connections, but not if it also has a
    /// directory of authorities. Debian sets both by default, so the directory is removed if the file is readable.
    private func useSystemAnchors() throws(TransferFailure) {
        if SystemAuthorities.bundle != nil { try set(CURLOPT_CAPATH, pointer: nil) }
    }

    private func use(anchors pem: [UInt8]) throws(TransferFailure) {
        try set(CURLOPT_CAINFO, pointer: nil)
        try set(CURLOPT_CAPATH, pointer: nil)
        try set(CURLOPT_CAINFO_BLOB, blob: pem)
    }

    private func apply(_ identity: TransferIdentity) throws(TransferFailure) {
        try set(CURLOPT_SSLCERTTYPE, "PEM")
        try set(CURLOPT_SSLCERT_BLOB, blob: identity.certificates)
        try set(CURLOPT_SSLKEYTYPE, "PEM")
        try set(CURLOPT_SSLKEY_BLOB, blob: identity.key)
    }
}

extension TransferTrust.TLSVersion {
    /// The minimum version without a setting of the program.
    fileprivate static let standardMinimum: Self = {
        guard let context = SSL_CTX_new(TLS_client_method()) else { return .tls12 }
        defer { SSL_CTX_free(context) }
        // 0x0304 is TLS1_3_VERSION.
        return SSL_CTX_ctrl(context, netwatch_ctrl_get_min_proto_version, 0, nil) >= 0x0304 ? .tls13 : .tls12
    }()

    /// The value of `CURLOPT_SSLVERSION`, which sets only a minimum.
    fileprivate var option: Int {
        switch self {
        case .tls10: CURL_SSLVERSION_TLSv1_0
        case .tls11: CURL_SSLVERSION_TLSv1_1
        case .tls12: CURL_SSLVERSION_TLSv1_2
        case .tls13: CURL_SSLVERSION_TLSv1_3
        }
    }
}
