internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

extension TransferRequest {
    /// What a request without a field of that name says it was sent by.
    static let defaultUserAgent = "netwatch/0.1.0"

    /// The field that names a request, so that a server can tell a second copy from a second request
    /// (draft-ietf-httpapi-idempotency-key-header).
    private static let idempotencyKey = "Idempotency-Key"

    /// - Throws: `URLError.badURL` without a URL, and `URLError.requestBodyStreamExhausted` for a body
    ///   stream, which is not supported.
    init(_ request: URLRequest) throws {
        guard let url = request.url else { throw URLError(.badURL) }
        guard request.httpBodyStream == nil else { throw URLError(.requestBodyStreamExhausted) }
        self.init(url: url.absoluteString, method: request.httpMethod ?? "GET")
        headers = Self.headers(of: request)
        body = request.httpBody.map { .bytes(Array($0)) }
        idleTimeout = Self.idleTimeout(request.timeoutInterval)
        // libcurl sends a request again, unasked, when a reused connection ends before the first byte of
        // the response. Twice is once for an idempotent method, and with a key for the server; anything
        // else takes a connection on which that cannot happen.
        allowsConnectionReuse =
            HTTPMethod.isIdempotent(method) || headers.contains { $0.isNamed(Self.idempotencyKey) }
    }

    /// A dictionary has an order of its own on every run; on the wire names are sorted.
    private static func headers(of request: URLRequest) -> [Header] {
        var headers = (request.allHTTPHeaderFields ?? [:])
            .sorted { $0.key < $1.key }
            .map { Header($0.key, $0.value) }
        if !headers.contains(where: { $0.isNamed("User-Agent") }) {
            headers.append(Header("User-Agent", defaultUserAgent))
        }
        return headers
    }

    /// As Foundation has it: seconds without a byte, 60 for what is no time.
    private static func idleTimeout(_ interval: TimeInterval) -> Duration {
        guard interval > 0 else { return .seconds(60) }
        return .seconds(min(interval, TimeInterval(Int32.max)))
    }
}
