internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

extension TransferRequest {
    /// What a request without a field of that name says it was sent by.
    static let defaultUserAgent = "netwatch/0.1.0"

    /// The field that names a request, so that a server can tell a second copy from a second request
    /// (draft-ietf-httpapi-idempotency-key-header).
    private static let idempotencyKey = "Idempotency-Key"

    /// - Parameters:
    ///   - fields: What ``headers(of:settings:isForeign:)`` has made of it.
    ///   - upload: What is sent in place of the request's own body.
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
        // libcurl sends a request again, unasked, when a reused connection ends before the first byte of
        // the response. Twice is once for an idempotent method, and with a key for the server; anything
        // else takes a connection on which that cannot happen.
        allowsConnectionReuse =
            HTTPMethod.isIdempotent(method) || headers.contains { $0.isNamed(Self.idempotencyKey) }
    }

    /// The fields that are sent. A dictionary has an order of its own on every run; on the wire names are sorted.
    ///
    /// - Parameter isForeign: Whether the request goes to another origin than the program named, which must not see
    ///   what the session says to every server.
    static func headers(of request: URLRequest, settings: SessionSettings, isForeign: Bool) -> [Header] {
        let own = request.allHTTPHeaderFields ?? [:]
        var headers =
            own.isEmpty && !isForeign
            ? settings.sortedHeaders
            : own.merged(over: isForeign ? settings.headers.withoutSecrets : settings.headers).sortedFields
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
    var sortedFields: [TransferRequest.Header] {
        sorted { $0.key < $1.key }.map { TransferRequest.Header($0.key, $0.value) }
    }

    /// Without what proves who is asking, and the name that another server is called by.
    fileprivate var withoutSecrets: HTTPHeaders {
        filter { !["authorization", "proxy-authorization", "cookie", "host"].contains($0.key.lowercased()) }
    }
}
