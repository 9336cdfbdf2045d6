internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

extension TransferRequest {
    /// The field that identifies a request, so that a server can tell a repeated request from a second one
    /// (draft-ietf-httpapi-idempotency-key-header).
    private static let idempotencyKey = "Idempotency-Key"

    /// - Parameters:
    ///   - fields: The result of ``headers(of:settings:isCrossOrigin:)``.
    ///   - upload: The body that replaces the request's own.
    init(
        _ request: URLRequest,
        _ fields: [Header],
        upload: UploadBody?,
        settings: SessionSettings
    ) throws {
        guard let url = request.url else { throw URLError(.badURL) }
        self.init(url: url.absoluteString, method: request.httpMethod ?? "GET")
        headers = fields
        body = try upload?.transferBody() ?? request.httpBody.map { .bytes(Array($0)) }
        unixSocketPath = settings.unixSocketPath
        // libcurl sends a request again by itself when a reused connection ends before the first byte of the
        // response. That is harmless if the method is idempotent or a key lets the server detect it. Any other
        // request takes a new connection, on which it cannot happen.
        allowsConnectionReuse =
            HTTPMethod.isIdempotent(method) || headers.contains { $0.isNamed(Self.idempotencyKey) }
    }

    /// Returns the header fields to send. They are sorted by name, because a dictionary's order differs on
    /// every run.
    ///
    /// - Parameter isCrossOrigin: Whether the request goes to another origin than the program named. That origin
    ///   must not receive the session's secret fields.
    static func headers(of request: URLRequest, settings: SessionSettings, isCrossOrigin: Bool) -> [Header] {
        let own = request.allHTTPHeaderFields ?? [:]
        var headers =
            own.isEmpty && !isCrossOrigin
            ? settings.sortedHeaders
            : own.merged(over: isCrossOrigin ? settings.headers.withoutOriginFields : settings.headers)
                .sortedFields
        if !headers.contains(where: { $0.isNamed("User-Agent") }) {
            headers.append(Header("User-Agent", defaultUserAgent))
        }
        if !headers.contains(where: { $0.isNamed("Cookie") }),
            let cookies = settings.cookieField(for: request)
        {
            headers.append(Header("Cookie", cookies))
        }
        return headers
    }
}

extension HTTPHeaders {
    /// The fields that may be sent to another origin. `Host` is no secret, but names the first origin.
    fileprivate var withoutOriginFields: HTTPHeaders {
        filter { !SecretHeaderFields.originBound.contains($0.key.lowercased()) }
    }
}
