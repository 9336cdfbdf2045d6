internal import NetwatchEventLoop

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
