internal import CNetwatchCurl

extension TransferRequest {
    /// Rejects requests that would put something else on the wire than the caller meant.
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
        // Request smuggling needs two different body lengths, so the caller cannot set this header.
        guard !header.isNamed("Transfer-Encoding") else {
            throw .refused(CURLE_BAD_FUNCTION_ARGUMENT, "the header Transfer-Encoding cannot be set")
        }
        guard !header.isNamed("Content-Length") || header.value == expectedContentLength else {
            throw .refused(
                CURLE_BAD_FUNCTION_ARGUMENT,
                "the header Content-Length differs from the body's length"
            )
        }
    }

    /// The only accepted `Content-Length`; `nil` for a body of unknown length.
    private var expectedContentLength: String? {
        (body.map(\.length) ?? 0).map(String.init)
    }

    /// Checks the length of the path. `sockaddr_un.sun_path` has 108 bytes, the last of which is NUL (`unix(7)`).
    private static func validate(socketPath: String) throws(TransferFailure) {
        let bytes = socketPath.utf8
        guard !bytes.isEmpty, bytes.count < 108, !bytes.contains(0) else {
            throw .refused(
                CURLE_BAD_FUNCTION_ARGUMENT,
                "the unix socket path is empty, contains NUL, or is longer than 107 bytes"
            )
        }
    }
}

extension TransferRequest.Header {
    /// Returns whether the header has this name. Names are compared without case (RFC 9110 §5.1).
    package func isNamed(_ other: String) -> Bool {
        name.utf8.count == other.utf8.count
            && zip(name.utf8, other.utf8).allSatisfy { $0.lowercasedASCII == $1.lowercasedASCII }
    }
}
