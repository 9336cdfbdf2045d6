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
    /// The rules for the method, the header fields and the framing are those of ``HTTPRequestRules``. Here they are
    /// checked before the body is opened, and reported as ``AFError``.
    ///
    /// This cannot detect a header value with a line break or NUL that the program sets with
    /// `setValue(_:forHTTPHeaderField:)`: Foundation drops such a value immediately.
    ///
    /// - Parameters:
    ///   - body: The source of the body that is sent. Default: the request itself.
    ///   - fields: The header fields that are sent. Default: the header fields of the request.
    /// - Throws: ``AFError/invalidURL(url:)`` or ``AFError/urlRequestValidationFailed(reason:)``;
    ///   `URLError.resourceUnavailable` for the cache policy `returnCacheDataDontLoad`.
    func validateForSending(
        body: Body = .own,
        fields: [TransferRequest.Header]? = nil
    ) throws {
        let method = httpMethod ?? "GET"
        try validateURL()
        try validate(method)
        try validateTimeout()
        try validateCachePolicy()
        try validate(body, with: method)
        let length = bodyLength(body)
        // Sorted, so that a request with several invalid fields fails with the same error each time.
        for field in fields ?? (allHTTPHeaderFields ?? [:]).sortedFields {
            let (name, value) = (field.name, field.value)
            guard HTTPRequestRules.fault(ofHeader: name, value) == nil,
                HTTPRequestRules.fault(ofFraming: name, value, length) == nil
            else {
                throw AFError.urlRequestValidationFailed(reason: .invalidHeader(name: name, value: value))
            }
        }
    }

    private func validateURL() throws {
        guard let url else { throw AFError.invalidURL(url: "") }
        guard let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https" else {
            throw AFError.urlRequestValidationFailed(reason: .unsupportedScheme(url))
        }
        guard let host = url.host(percentEncoded: false), !host.isEmpty else {
            throw AFError.urlRequestValidationFailed(reason: .missingHost(url))
        }
        // A URL may contain only printable ASCII. `URL(string:)` percent-encodes most other characters, but not all.
        guard url.absoluteString.allBytes({ $0 > 0x20 && $0 < 0x7f }),
            URL.fault(ofHost: host, port: url.port) == nil
        else { throw AFError.invalidURL(url: url) }
    }

    private func validate(_ method: String) throws {
        guard HTTPRequestRules.fault(ofMethod: method) == nil else {
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

    /// Throws URLSession's error for a response that is not in the cache if the request permits only cached responses.
    private func validateCachePolicy() throws {
        guard cachePolicy != .returnCacheDataDontLoad else {
            let words = "the cache policy `returnCacheDataDontLoad` needs a cache, and there is none"
            throw URLError(.resourceUnavailable, message: words)
        }
    }

    /// Throws an error if a GET or HEAD request has a body. RFC 9110 §9.3.1 does not define the meaning of such a
    /// body, and servers reject or ignore it.
    private func validate(_ body: Body, with method: String) throws {
        guard ["GET", "HEAD"].contains(method) else { return }
        if case .own = body, httpBody == nil, httpBodyStream == nil { return }
        throw AFError.urlRequestValidationFailed(reason: .bodyDataInGETRequest(httpBody ?? Data()))
    }

    private func bodyLength(_ body: Body) -> HTTPRequestRules.BodyLength {
        switch body {
        case .upload(let byteCount): byteCount.map { .bytes($0) } ?? .notYetKnown
        case .own: httpBodyStream == nil ? .bytes(Int64(httpBody?.count ?? 0)) : .notYetKnown
        }
    }
}
