internal import CNetwatchCurl

extension TransferRequest {
    /// Checks that the request can be sent exactly as the caller wrote it. For example, no header value may contain a
    /// line break, which would begin another header.
    ///
    /// - Throws: ``TransferFailure`` with code 43 (`CURLE_BAD_FUNCTION_ARGUMENT`).
    func validate() throws(TransferFailure) {
        if let fault { throw .refused(CURLE_BAD_FUNCTION_ARGUMENT, fault) }
        try validateBodyLength()
        try validateCredentials()
        if let unixSocketPath { try Self.validate(socketPath: unixSocketPath) }
        guard unixSocketPath == nil || binding == nil else {
            throw .refused(CURLE_BAD_FUNCTION_ARGUMENT, "a unix socket cannot be bound to an interface")
        }
    }

    /// The error message for the first rule of ``HTTPRequestRules`` that the request breaks; `nil` if it breaks none.
    private var fault: String? {
        if let fault = HTTPRequestRules.fault(ofMethod: method) { return fault }
        let length = bodyLength
        for header in headers {
            let fault =
                HTTPRequestRules.fault(ofHeader: header.name, header.value)
                ?? HTTPRequestRules.fault(ofFraming: header.name, header.value, length)
            if let fault { return fault }
        }
        return body == nil ? nil : HTTPRequestRules.fault(ofBodyWithMethod: method)
    }

    private var bodyLength: HTTPRequestRules.BodyLength {
        guard let body else { return .bytes(0) }
        return body.length.map { .bytes($0) } ?? .chunked
    }

    private func validateBodyLength() throws(TransferFailure) {
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

    /// Checks that the path of a unix socket fits into `sockaddr_un.sun_path`, which has 108 bytes including the final
    /// NUL (`unix(7)`).
    private static func validate(socketPath: String) throws(TransferFailure) {
        let bytes = ExactText.encode(socketPath)
        guard !bytes.isEmpty, bytes.count < 108, !bytes.contains(0) else {
            throw .refused(
                CURLE_BAD_FUNCTION_ARGUMENT,
                "the unix socket path has \(bytes.count) bytes; accepted: 1 to 107 bytes without NUL"
            )
        }
    }
}

extension TransferRequest.Header {
    /// Returns whether the header has this name. The comparison ignores case (RFC 9110 §5.1).
    package func isNamed(_ other: String) -> Bool { name.equalsIgnoringCase(other) }
}
