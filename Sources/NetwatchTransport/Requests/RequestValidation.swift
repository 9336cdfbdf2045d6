internal import CNetwatchCurl

extension TransferRequest {
    /// Checks that the request can be sent exactly as the caller wrote it. For example, no header value may contain a
    /// line break, which would begin another header.
    ///
    /// - Throws: ``TransferFailure`` with code 43 (`CURLE_BAD_FUNCTION_ARGUMENT`).
    func validate() throws(TransferFailure) {
        try validateMethod()
        for header in headers { try validate(header) }
        try validateBody()
        try validateCredentials()
        if let unixSocketPath { try Self.validate(socketPath: unixSocketPath) }
        guard unixSocketPath == nil || binding == nil else {
            throw .refused(CURLE_BAD_FUNCTION_ARGUMENT, "a unix socket cannot be bound to an interface")
        }
    }

    private func validateMethod() throws(TransferFailure) {
        guard HTTPToken.isValid(method) else {
            throw .refused(
                CURLE_BAD_FUNCTION_ARGUMENT,
                "the method \(method.debugDescription) is not an HTTP token"
            )
        }
        // CONNECT turns the connection into a tunnel, which only a proxy can provide.
        guard method != "CONNECT" else {
            throw .refused(CURLE_BAD_FUNCTION_ARGUMENT, "the method CONNECT is not supported")
        }
    }

    private func validateBody() throws(TransferFailure) {
        guard method != "HEAD" || body == nil else {
            throw .refused(CURLE_BAD_FUNCTION_ARGUMENT, "a HEAD request cannot have a body")
        }
        if let length = body?.length, length < 0 {
            throw .refused(CURLE_BAD_FUNCTION_ARGUMENT, "the body length \(length) is negative")
        }
    }

    private func validateCredentials() throws(TransferFailure) {
        guard let credentials else { return }
        guard !credentials.user.utf8.contains(0), !credentials.password.utf8.contains(0) else {
            throw .refused(CURLE_BAD_FUNCTION_ARGUMENT, "the user name or password contains NUL")
        }
    }

    private func validate(_ header: Header) throws(TransferFailure) {
        guard HTTPToken.isValid(header.name) else {
            throw .refused(
                CURLE_BAD_FUNCTION_ARGUMENT,
                "the header name \(header.name.debugDescription) is not an HTTP token"
            )
        }
        guard header.value.utf8.allSatisfy({ $0 != 0 && $0 != 0x0a && $0 != 0x0d }) else {
            throw .refused(
                CURLE_BAD_FUNCTION_ARGUMENT,
                "the value of the header \(header.name) contains a line break or NUL"
            )
        }
        // A second statement of the body's length would allow request smuggling, so only libcurl sets this header.
        guard !header.isNamed("Transfer-Encoding") else {
            throw .refused(CURLE_BAD_FUNCTION_ARGUMENT, "the header Transfer-Encoding cannot be set")
        }
        guard !header.isNamed("Content-Length") || header.value == expectedContentLength else {
            let rule =
                expectedContentLength.map { "must be the body's length, \($0)" }
                ?? "cannot be set, because the body's length is unknown; remove the header"
            throw .refused(CURLE_BAD_FUNCTION_ARGUMENT, "the header Content-Length \(rule)")
        }
    }

    /// The only value of `Content-Length` that the caller may set: the body's length. `nil` if the length is unknown;
    /// the header is then refused.
    private var expectedContentLength: String? {
        (body.map(\.length) ?? 0).map(String.init)
    }

    /// Checks that the path of a unix socket fits into `sockaddr_un.sun_path`, which has 108 bytes including the final
    /// NUL (`unix(7)`).
    private static func validate(socketPath: String) throws(TransferFailure) {
        let bytes = socketPath.utf8
        guard !bytes.isEmpty, bytes.count < 108, !bytes.contains(0) else {
            throw .refused(
                CURLE_BAD_FUNCTION_ARGUMENT,
                "the unix socket path has \(bytes.count) bytes; accepted are 1 to 107 bytes without NUL"
            )
        }
    }
}

extension TransferRequest.Header {
    /// Returns whether the header has this name. The comparison ignores case (RFC 9110 §5.1).
    package func isNamed(_ other: String) -> Bool {
        name.utf8.count == other.utf8.count
            && zip(name.utf8, other.utf8).allSatisfy { $0.lowercasedASCII == $1.lowercasedASCII }
    }
}
