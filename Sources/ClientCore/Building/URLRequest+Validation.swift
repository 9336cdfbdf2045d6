internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

extension URLRequest {
    /// The body that is sent.
    enum Body {
        /// The request's own body.
        case own
        /// A file, a stream or a form, with its length in bytes if known.
        case upload(byteCount: Int64?)
    }

    /// Refuses a request that cannot be sent, or that would be sent differently than intended.
    ///
    /// A value with a line break or NUL cannot be refused if it was set with `setValue(_:forHTTPHeaderField:)`,
    /// because Foundation has already dropped it.
    ///
    /// - Parameters:
    ///   - allowedSchemes: The accepted URL schemes, lower-case. Default: `http` and `https`.
    ///   - body: The body that is sent. Default: the request's own.
    ///   - fields: The header fields that are sent. Default: those of the request.
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
        // Sorted, so that of several invalid fields the same one is reported each time.
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
        // `URL` percent-encodes everything else.
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
        // A NaN fails this comparison, too.
        guard timeoutInterval >= 0 else {
            let accepted = "0 for the session's timeout, or more seconds"
            throw AFError.invalidOption("timeoutInterval", "\(timeoutInterval)", accepted: accepted)
        }
    }

    /// Refuses a body with GET and HEAD. RFC 9110 §9.3.1 does not define its meaning, and servers reject or
    /// ignore it.
    private func validate(_ body: Body) throws {
        guard ["GET", "HEAD"].contains(httpMethod ?? "GET") else { return }
        if case .own = body, httpBody == nil, httpBodyStream == nil { return }
        throw AFError.urlRequestValidationFailed(reason: .bodyDataInGETRequest(httpBody ?? Data()))
    }

    private static func isSendable(_ name: String, _ value: String) -> Bool {
        HTTPToken.isValid(name) && HTTPFieldValue.isValid(value)
    }

    /// Whether a field contradicts the body. If two servers disagree about where a body ends, requests can be
    /// smuggled.
    private func contradicts(_ name: String, _ value: String, _ byteCount: Int64?) -> Bool {
        switch name.lowercased() {
        case "transfer-encoding": true
        case "content-length": byteCount.map { value != String($0) } ?? !Self.isLength(value)
        default: false
        }
    }

    /// The length of the body in bytes; `nil` if it is only known after reading the body.
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
