public import Foundation
public import FoundationNetworking
internal import NetwatchTransport

extension String: URLConvertible {
    /// Returns the URL that `URL(string:)` parses from the text. Characters that a URL must not contain are
    /// percent-encoded.
    ///
    /// - Throws: ``AFError/invalidURL(url:)`` if the text is empty or cannot be parsed.
    public func asURL() throws -> URL {
        guard let url = URL(string: self) else { throw AFError.invalidURL(url: self) }
        return url
    }
}

extension URL: URLConvertible {
    /// Returns the URL itself.
    public func asURL() throws -> URL { self }
}

extension URLComponents: URLConvertible {
    /// Returns the URL that consists of the components.
    ///
    /// - Throws: ``AFError/invalidURL(url:)`` if they do not form a URL.
    public func asURL() throws -> URL {
        guard let url else { throw AFError.invalidURL(url: self) }
        return url
    }
}

extension URLRequest: URLRequestConvertible {
    /// Returns the request itself.
    public func asURLRequest() throws -> URLRequest { self }
}

extension URLRequest {
    /// Creates a request.
    ///
    /// - Parameters:
    ///   - url: The URL.
    ///   - method: The method.
    ///   - headers: Header fields. Default: none. If two names differ only in case, only the field whose name
    ///     sorts last is kept. Fields are not validated here: sending a request with an invalid field fails.
    /// - Throws: The errors of ``URLConvertible/asURL()``.
    public init(url: any URLConvertible, method: HTTPMethod, headers: HTTPHeaders? = nil) throws {
        self.init(url: try url.asURL())
        // GET is Foundation's default, so setting it would only take time.
        if method != .get { httpMethod = method.rawValue }
        if let headers, !headers.isEmpty { setHeaders(headers) }
    }
}

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

extension TransferRequest {
    /// Translates a request for the transfer engine.
    ///
    /// - Parameters:
    ///   - fields: The result of ``headers(of:settings:isCrossOrigin:)``.
    ///   - upload: The body that is sent instead of the request's `httpBody`.
    /// - Throws: `URLError.badURL` if the request has no URL, and the errors of ``UploadBody/transferBody()``.
    init(
        _ request: URLRequest,
        _ fields: [Header],
        upload: UploadBody?,
        settings: SessionSettings
    ) throws {
        guard let url = request.url else { throw URLError.missingURL }
        self.init(url: url.absoluteString, method: request.httpMethod ?? "GET")
        headers = fields
        body = try upload?.transferBody() ?? request.httpBody.map { .bytes(Array($0)) }
        unixSocketPath = settings.unixSocketPath
        // If a reused connection ends before the first byte of the response, libcurl sends the request again. The
        // server may then execute the request twice. This is harmless if the method is idempotent, or if the
        // request has an idempotency key. All other requests get a new connection, on which libcurl never resends.
        allowsConnectionReuse =
            HTTPMethod.isIdempotent(method) || headers.contains { $0.isNamed(Header.idempotencyKey) }
    }

    /// Returns the header fields to send: the fields of the request, and all fields of the session that the request
    /// does not set. `User-Agent` and `Cookie` are appended if neither the request nor the session sets them.
    ///
    /// The fields are sorted by name, because the order of a dictionary differs from run to run.
    ///
    /// - Parameters:
    ///   - isCrossOrigin: Whether a redirect has led to a different origin than the program's URL. That origin must not
    ///     receive the session's secret fields.
    ///   - redirects: What redirects may do. Without ``RedirectOptions/crossOriginData``, a different origin receives
    ///     only the session's fields that browsers send to every origin.
    static func headers(
        of request: URLRequest,
        settings: SessionSettings,
        isCrossOrigin: Bool,
        redirects: RedirectOptions = []
    ) -> [Header] {
        let own = request.allHTTPHeaderFields ?? [:]
        var headers =
            own.isEmpty && !isCrossOrigin
            ? settings.sortedHeaders
            : own.merged(over: isCrossOrigin ? settings.headers.acrossOrigins(redirects) : settings.headers)
                .sortedFields.addingUserAgent()
        if !headers.contains(where: { $0.isNamed("Cookie") }),
            let cookies = settings.cookieField(for: request)
        {
            headers.append(Header("Cookie", cookies, isExact: true))
        }
        return headers
    }
}

extension [TransferRequest.Header] {
    /// Returns these fields, followed by `User-Agent` if they do not contain it.
    func addingUserAgent() -> [TransferRequest.Header] {
        guard !contains(where: { $0.isNamed("User-Agent") }) else { return self }
        return self + [TransferRequest.Header("User-Agent", TransferRequest.defaultUserAgent)]
    }

    /// Returns these fields followed by `replacements`, without the fields that have the name of a replacement.
    func replacing(with replacements: [TransferRequest.Header]) -> [TransferRequest.Header] {
        guard !replacements.isEmpty else { return self }
        return filter { field in !replacements.contains { $0.isNamed(field.name) } } + replacements
    }
}

extension HTTPHeaders {
    /// The fields that describe the program, and no origin.
    private static let forEveryOrigin: Set<String> = [
        "accept", "accept-encoding", "accept-language", "user-agent",
    ]

    /// The fields that may be sent to a different origin. Never secret fields, and never `Host`, which names the
    /// original host.
    fileprivate func acrossOrigins(_ redirects: RedirectOptions) -> HTTPHeaders {
        filter { field in
            let name = field.key.lowercased()
            return redirects.contains(.crossOriginData)
                ? !SecretHeaderFields.originBound.contains(name) : Self.forEveryOrigin.contains(name)
        }
    }
}
