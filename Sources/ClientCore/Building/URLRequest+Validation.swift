internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

extension URLRequest {
    /// The source of the body that is sent.
    enum Body {
        /// The request's `httpBody` or `httpBodyStream`.
        case own
        /// Another body, such as a file, a stream or a form. The value is its length in bytes, or `nil` if unknown.
        case upload(byteCount: Int64?)
    }

    /// Throws an error if the request cannot be sent, or would be sent differently than the program intends.
    ///
    /// This cannot detect a header value with a line break or NUL that the program sets with
    /// `setValue(_:forHTTPHeaderField:)`: Foundation drops such a value immediately.
    ///
    /// - Parameters:
    ///   - allowedSchemes: The accepted URL schemes, lower-case. Default: `http` and `https`.
    ///   - body: The source of the body that is sent. Default: the request itself.
    ///   - fields: The header fields that are sent. Default: the header fields of the request.
    /// - Throws: ``AFError/invalidURL(url:)`` or ``AFError/urlRequestValidationFailed(reason:)``.
    func validateForSending(
        allowedSchemes: Set<String> = ["http", "https"],
        body: Body = .own,
        fields: [TransferRequest.Header]? = nil
    ) throws {
        try validateURL(allowedSchemes)
        try validateMethod()
        try validateTimeout()
        try validate(body)
        // Sorted, so that a request with several invalid fields fails with the same error each time.
        for field in fields ?? (allHTTPHeaderFields ?? [:]).sortedFields {
            let (name, value) = (field.name, field.value)
            guard Self.isSendable(name, value), !contradicts(name, value, byteCount(body)) else {
                throw AFError.urlRequestValidationFailed(reason: .invalidHeader(name: name, value: value))
            }
        }
    }

    private func validateURL(_ allowedSchemes: Set<String>) throws {
        guard let url else { throw AFError.invalidURL(url: "") }
        guard let scheme = url.scheme, allowedSchemes.contains(scheme.lowercased()) else {
            throw AFError.urlRequestValidationFailed(reason: .unsupportedScheme(url))
        }
        guard let host = url.host(percentEncoded: false), !host.isEmpty else {
            throw AFError.urlRequestValidationFailed(reason: .missingHost(url))
        }
        // A URL may contain only printable ASCII. `URL(string:)` percent-encodes most other characters, but not all.
        guard url.absoluteString.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }),
            URL.fault(ofHost: host, port: url.port) == nil
        else { throw AFError.invalidURL(url: url) }
    }

    private func validateMethod() throws {
        let method = httpMethod ?? "GET"
        // CONNECT turns the connection into a tunnel, which only a proxy supports.
        guard HTTPToken.isValid(method), method.uppercased() != "CONNECT" else {
            throw AFError.urlRequestValidationFailed(reason: .invalidMethod(method))
        }
    }

    private func validateTimeout() throws {
        // Comparing NaN is always false, so NaN is refused as well.
        guard timeoutInterval >= 0 else {
            let accepted = "a positive number of seconds, or 0 for the session's timeout"
            throw AFError.invalidOption("timeoutInterval", "\(timeoutInterval)", accepted: accepted)
        }
    }

    /// Throws an error if a GET or HEAD request has a body. RFC 9110 §9.3.1 does not define the meaning of such a
    /// body, and servers reject or ignore it.
    private func validate(_ body: Body) throws {
        guard ["GET", "HEAD"].contains(httpMethod ?? "GET") else { return }
        if case .own = body, httpBody == nil, httpBodyStream == nil { return }
        throw AFError.urlRequestValidationFailed(reason: .bodyDataInGETRequest(httpBody ?? Data()))
    }

    private static func isSendable(_ name: String, _ value: String) -> Bool {
        HTTPToken.isValid(name) && HTTPFieldValue.isValid(value)
    }

    /// Whether the field contradicts the length of the body, or how libcurl sends the body. If two servers disagree
    /// about where a body ends, an attacker can smuggle requests.
    private func contradicts(_ name: String, _ value: String, _ byteCount: Int64?) -> Bool {
        switch name.lowercased() {
        case "transfer-encoding": true
        case "content-length": byteCount.map { value != String($0) } ?? !Self.isLength(value)
        default: false
        }
    }

    /// The length of the body in bytes; `nil` if it is unknown before the body has been read.
    private func byteCount(_ body: Body) -> Int64? {
        switch body {
        case .upload(let byteCount): byteCount
        case .own: httpBodyStream == nil ? Int64(httpBody?.count ?? 0) : nil
        }
    }

    private static func isLength(_ text: String) -> Bool {
        text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } && Int64(text) != nil
    }
}
