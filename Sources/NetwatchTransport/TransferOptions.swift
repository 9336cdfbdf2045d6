internal import CNetwatchCurl

extension EasyHandle {
    /// Tells the handle everything about a request but its lists and callbacks.
    func apply(_ request: TransferRequest) throws(TransferFailure) {
        try applyPolicy()
        try set(CURLOPT_URL, request.url)
        try apply(method: request.method, body: request.body)
        try applyTimeouts(of: request)
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
        try set(CURLOPT_FOLLOWLOCATION, 0)
        try set(CURLOPT_SSL_VERIFYPEER, 1)
        try set(CURLOPT_SSL_VERIFYHOST, 2)
        // An address we handed over must not expire before its transfer connects, or libcurl would start
        // a thread to look the name up again. Every transfer brings new ones, so none grows old.
        try set(CURLOPT_DNS_CACHE_TIMEOUT, -1)
    }

    private func apply(method: String, body: [UInt8]?) throws(TransferFailure) {
        if method == "HEAD" { return try set(CURLOPT_NOBODY, 1) }
        if let body = body ?? (Self.usuallyHasBody(method) ? [] : nil) {
            try apply(body: body)
        }
        if method != "GET" || body != nil { try set(CURLOPT_CUSTOMREQUEST, method) }
    }

    private func apply(body: [UInt8]) throws(TransferFailure) {
        // The size comes first: it decides how much is copied.
        try set(CURLOPT_POSTFIELDSIZE_LARGE, offset: Int64(body.count))
        // An empty array may have no address, and without one libcurl would read standard input.
        guard !body.isEmpty else { return try set(CURLOPT_COPYPOSTFIELDS, "") }
        try set(CURLOPT_COPYPOSTFIELDS, pointer: body)
    }

    /// RFC 9110 §8.6: these methods send `Content-Length: 0` rather than nothing.
    private static func usuallyHasBody(_ method: String) -> Bool {
        ["POST", "PUT", "PATCH"].contains(method)
    }

    private func applyTimeouts(of request: TransferRequest) throws(TransferFailure) {
        try set(CURLOPT_CONNECTTIMEOUT_MS, request.connectTimeout.positiveMilliseconds)
        if let total = request.totalTimeout { try set(CURLOPT_TIMEOUT_MS, total.positiveMilliseconds) }
        if let idle = request.idleTimeout {
            try set(CURLOPT_LOW_SPEED_LIMIT, 1)
            try set(CURLOPT_LOW_SPEED_TIME, (idle.positiveMilliseconds + 999) / 1000)
        }
    }
}

extension TransferRequest {
    /// The caller's fields, and what keeps libcurl from adding some of its own.
    func headerList() -> StringList {
        var list = StringList()
        for header in headers where !header.isNamed("Content-Length") {
            // `Name:` alone would take the field away; the semicolon sends it without a value.
            let isBlank = header.value.utf8.allSatisfy { $0 == 0x20 || $0 == 0x09 }
            list.append(isBlank ? "\(header.name);" : "\(header.name): \(header.value)")
        }
        // Many servers do not answer it, and the body then waits for a second.
        if !headers.contains(where: { $0.isNamed("Expect") }) { list.append("Expect:") }
        // libcurl takes every body for a form.
        if !headers.contains(where: { $0.isNamed("Content-Type") }) { list.append("Content-Type:") }
        return list
    }
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
