internal import Foundation
internal import FoundationNetworking

/// The secrets that a credential or an adapter added to an attempt.
///
/// A redirect, for example, may repeat the query of the URL, and the store keeps header fields of responses and error
/// messages.
///
/// If an adapter or an interceptor throws, it returns no request, so the secrets that it added are not known. Its error
/// may contain them, or the response of a token service. Only the secrets of the request's credential are removed from
/// such an error.
struct AddedSecrets {
    /// The values, the longest first.
    private let values: [String]

    /// - Parameters:
    ///   - url: The URL that is sent.
    ///   - headers: The header lines that are sent.
    ///   - original: The attempt to which they were added.
    init(url: String, headers: [QueueRequest.Header], besides original: Attempt) {
        // `URLRequest` joins the values of a repeated field, and may spell the URL differently.
        let unchanged = URLRequest(original)
        let joined = (unchanged?.allHTTPHeaderFields ?? [:]).map { QueueRequest.Header(name: $0, value: $1) }
        let known = Set((original.headers + joined).map(Self.comparable))
        let added = headers.map(Self.comparable).filter {
            !known.contains($0) && !Self.publicFields.contains($0.name)
        }
        let fields = added.flatMap { field in
            // The credentials follow the scheme: `Bearer TOKEN`.
            let isAuthorization = field.name.hasSuffix("authorization")
            let parts = isAuthorization ? field.value.split(separator: " ").map(String.init) : []
            return [field.value] + parts + parts.flatMap(Self.basicSecrets)
        }
        let items = Set([original.url, unchanged?.url?.absoluteString ?? ""].flatMap(Self.queryItems))
        let queryValues = Self.queryItems(of: url).filter { !items.contains($0) }.compactMap { item in
            item.firstIndex(of: "=").map { String(item[item.index(after: $0)...]) }
        }
        let schemes: Set = ["Bearer", "Basic"]
        values = (fields + queryValues + queryValues.compactMap(\.removingPercentEncoding))
            // Shorter values would occur in unrelated text.
            .filter { $0.utf8.count >= 4 && !schemes.contains($0) }
            .sorted { $0.utf8.count > $1.utf8.count }
    }

    /// Returns the outcome with `REDACTED` in place of the secrets in header fields and messages.
    func removed(from outcome: AttemptOutcome) -> AttemptOutcome {
        guard !values.isEmpty else { return outcome }
        switch outcome {
        case .response(let status, let headers, let body, let isTruncated):
            let headers = headers.map { ($0.0, redact($0.1)) }
            return .response(status: status, headers: headers, body: body, isTruncated: isTruncated)
        case .failure(let failure): return .failure(failure.withMessage(redact(failure.message)))
        case .withheld(let reason): return .withheld(reason.mapText(redact))
        case .unsendable: return outcome
        }
    }

    /// Returns a header field with its name in lower case.
    private static func comparable(_ field: QueueRequest.Header) -> QueueRequest.Header {
        QueueRequest.Header(name: field.name.lowercased(), value: field.value)
    }

    private func redact(_ text: String) -> String {
        values.reduce(text) { $0.replacing($1, with: "REDACTED") }
    }

    /// Returns the password of RFC 7617's `user:password` in Base64, and both together; nothing for other text.
    private static func basicSecrets(_ encoded: String) -> [String] {
        guard let data = Data(base64Encoded: encoded), let text = String(data: data, encoding: .utf8),
            let colon = text.firstIndex(of: ":")
        else { return [] }
        let password = String(text[text.index(after: colon)...])
        return [
            text, password, password.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? password,
        ]
    }

    /// Fields that contain no secret. Their values occur in responses and would be replaced there.
    private static let publicFields: Set<String> = [
        "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "content-encoding",
        "content-language", "content-type", "date", "from", "idempotency-key", "if-match",
        "if-modified-since",
        "if-none-match", "if-range", "if-unmodified-since", "origin", "pragma", "prefer", "range", "referer",
        "traceparent", "user-agent", "x-correlation-id", "x-request-id",
    ]

    private static func queryItems(of url: String) -> [Substring] {
        let base = url.prefix { $0 != "#" }
        guard let mark = base.firstIndex(of: "?") else { return [] }
        return base[base.index(after: mark)...].split(separator: "&")
    }
}
