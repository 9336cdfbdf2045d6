internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

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
