internal import CNetwatchCurl
internal import NetwatchEventLoop

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

/// The rules for a request's method, header fields and framing, with one error message for each rule.
///
/// The transport, `ClientCore` and `OfflineQueue` check requests with these rules. Each function returns the error
/// message if the rule is broken, and `nil` otherwise.
package enum HTTPRequestRules {
    /// The length of a request's body.
    package enum BodyLength: Sendable {
        case bytes(Int64)
        /// The length is unknown until the end of the body, which is sent in chunks.
        case chunked
        /// The length will be known when the body is opened.
        case notYetKnown
    }

    /// Checks that the method is a token (RFC 9110 §9.1) and not CONNECT. CONNECT turns the connection into a tunnel,
    /// which only a proxy can provide. Some servers ignore the case of a method, so `connect` is refused, too.
    package static func fault(ofMethod method: String) -> String? {
        HTTPToken.isValid(method) && !method.equalsIgnoringCase("CONNECT") ? nil : refusal(ofMethod: method)
    }

    /// Checks that a HEAD request has no body.
    package static func fault(ofBodyWithMethod method: String) -> String? {
        method == "HEAD" ? "a HEAD request must not have a body" : nil
    }

    /// Checks that the name of a header field is a token (RFC 9110 §5.1).
    package static func fault(ofHeaderName name: String) -> String? {
        HTTPToken.isValid(name) ? nil : "the header name \(shown(name)) is not an HTTP token such as X-Note"
    }

    /// Checks the name and the value of a header field. The message does not contain the value, which may be a secret.
    package static func fault(ofHeader name: String, _ value: String) -> String? {
        fault(ofHeaderName: name) ?? HTTPFieldValue.fault(of: value, in: name)
    }

    /// Checks that a header field does not contradict the body's length, or how libcurl sends the body. If two servers
    /// disagree about where a body ends, an attacker can smuggle requests.
    ///
    /// `TE` must not offer transfer codings for the response, because the transport refuses them. HTTP/2 permits only
    /// `trailers`, too (RFC 9113 §8.2.2).
    package static func fault(ofFraming name: String, _ value: String, _ length: BodyLength) -> String? {
        let isSendable =
            if name.equalsIgnoringCase("Transfer-Encoding") {
                false
            } else if name.equalsIgnoringCase("Content-Length") {
                isLength(value, length)
            } else if name.equalsIgnoringCase("TE") {
                value.listElements.allSatisfy { ["", "trailers"].contains($0.lowercased()) }
            } else {
                true
            }
        return isSendable ? nil : framingRefusal(name)
    }

    /// Returns the error message for a method that cannot be sent.
    package static func refusal(ofMethod method: String) -> String {
        "the method \(shown(method)) is not valid: it must be an HTTP token such as POST, and not CONNECT"
    }

    /// Returns the error message for a header field that cannot be sent.
    package static func refusal(ofHeader name: String, _ value: String) -> String {
        fault(ofHeader: name, value) ?? framingRefusal(name)
    }

    private static func framingRefusal(_ name: String) -> String {
        let rule =
            switch name.lowercased() {
            case "content-length": "is not the length of the body; remove the header"
            case "te": "offers a transfer coding; only `trailers` is accepted"
            default: "cannot be set; remove the header"
            }
        return "the header \(shown(name)) \(rule)"
    }

    private static func isLength(_ value: String, _ length: BodyLength) -> Bool {
        switch length {
        case .bytes(let count): value == String(count)
        case .chunked: false
        case .notYetKnown:
            value.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
                && Int64(value) != nil
        }
    }

    /// Returns the first 80 characters of a text, in quotation marks and with escapes.
    static func shown(_ text: String) -> String {
        let scalars = text.unicodeScalars
        guard scalars.count > 80 else { return text.printableLiteral }
        return String(String.UnicodeScalarView(scalars.prefix(80)) + "…".unicodeScalars).printableLiteral
    }
}

/// Validation of HTTP field values (RFC 9110 §5.5).
package enum HTTPFieldValue {
    /// Returns whether the value can be sent. A value must not contain control characters except tabs.
    package static func isValid(_ text: String) -> Bool {
        text.allBytes(isAllowed)
    }

    /// Returns the error message if the value of a header field cannot be sent, and `nil` if it can. The message shows
    /// the character that is not allowed. It does not show the value, which may be a secret.
    package static func fault(of value: String, in name: String) -> String? {
        guard !isValid(value), let position = value.utf8.firstIndex(where: { !isAllowed($0) })
        else { return nil }
        let character = String(UnicodeScalar(value.utf8[position]))
        let byte = value.utf8.distance(from: value.startIndex, to: position) + 1
        return "the value of the header \(HTTPRequestRules.shown(name)) has \(character.debugDescription) "
            + "at byte \(byte); line breaks and control characters other than tab are not allowed"
    }

    private static func isAllowed(_ byte: UInt8) -> Bool { byte == 0x09 || (byte >= 0x20 && byte != 0x7f) }
}

/// Validation of HTTP tokens (RFC 9110 §5.6.2). Methods and header names are tokens.
package enum HTTPToken {
    /// Returns whether the text is a token.
    package static func isValid(_ text: String) -> Bool {
        !text.isEmpty && text.allBytes(isTokenCharacter)
    }

    private static func isTokenCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"):
            true
        default:
            "!#$%&'*+.^_`|~".utf8.contains(byte)
        }
    }
}

extension String {
    /// Returns whether all bytes of the text in UTF-8 satisfy a condition.
    ///
    /// The same as `utf8.allSatisfy`, which takes longer, because it computes an index for each byte. Each request
    /// checks the bytes of its URL and of its header fields.
    @inlinable package func allBytes(_ isAccepted: (UInt8) -> Bool) -> Bool {
        utf8.withContiguousStorageIfAvailable { $0.allSatisfy(isAccepted) } ?? utf8.allSatisfy(isAccepted)
    }

    /// Returns whether two tokens are equal except for the case of ASCII letters.
    func equalsIgnoringCase(_ other: String) -> Bool {
        utf8.count == other.utf8.count
            && zip(utf8, other.utf8).allSatisfy { $0.lowercasedASCII == $1.lowercasedASCII }
    }
}
