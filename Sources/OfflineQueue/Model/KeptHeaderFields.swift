internal import ClientCore

/// The header fields of a response that the store keeps.
///
/// This is a list of what is kept, not of what is dropped. A server may return a token in a field of any name, so only
/// fields that are known to describe the response are stored.
package enum KeptHeaderFields {
    /// The names in lower case.
    package static let names = content.union(caching).union(control).union(identification).union(rateLimits)

    /// The fields that describe the body (RFC 9110 §8).
    private static let content: Set<String> = [
        "content-type", "content-length", "content-language", "content-encoding", "content-location",
        "content-range", "content-digest", "repr-digest",
    ]

    /// The fields for caches and conditional requests (RFC 9110 §8.8, RFC 9111 §5).
    private static let caching: Set<String> = [
        "age", "cache-control", "date", "etag", "expires", "last-modified", "vary",
    ]

    /// The fields that tell a client what to do next, or who responded.
    private static let control: Set<String> = [
        "accept", "accept-ranges", "allow", "deprecation", "link", "location", "preference-applied",
        "retry-after",
        "server", "sunset", "via", "warning",
    ]

    /// The fields that identify the request in the logs of the server, and those that tell whether the server
    /// recognized an idempotency key.
    private static let identification: Set<String> = [
        "cf-ray", "correlation-id", "idempotency-key", "idempotency-replayed", "idempotent-replayed",
        "request-id",
        "traceparent", "x-amz-request-id", "x-amzn-requestid", "x-correlation-id", "x-idempotent-replayed",
        "x-ms-request-id", "x-request-id",
    ]

    /// The fields of rate limits: those of the IETF draft, and the older ones.
    private static let rateLimits: Set<String> = [
        "ratelimit", "ratelimit-limit", "ratelimit-policy", "ratelimit-remaining", "ratelimit-reset",
        "x-rate-limit-limit", "x-rate-limit-remaining", "x-rate-limit-reset", "x-ratelimit-limit",
        "x-ratelimit-remaining", "x-ratelimit-reset",
    ]

    /// The fields of ``names`` that depend on each byte of the body. They are not kept if the stored body is a changed one:
    /// a digest would also show whether a guess of the removed secret is right. Many servers use a digest as the ETag.
    package static let ofExactBody: Set<String> = ["content-length", "content-digest", "etag", "repr-digest"]

    /// Returns the value of a field as the store keeps it; `nil` if the field is not kept.
    ///
    /// The URLs in `Location`, `Content-Location` and `Link` lose their user information, query and fragment, which may
    /// contain tokens.
    package static func keptValue(of name: String, _ value: String) -> String? {
        let name = name.lowercased()
        guard names.contains(name) else { return nil }
        return switch name {
        case "location", "content-location": RedactedURL.withoutQuery(value)
        case "link": linkWithoutSecrets(value)
        default: value
        }
    }

    /// Removes these parts of each `<URL>` of a `Link` field (RFC 8288 §3).
    private static func linkWithoutSecrets(_ value: String) -> String {
        let (open, close) = (UInt8(ascii: "<"), UInt8(ascii: ">"))
        // Searches bytes for the same reason as ``RedactedURL``.
        var (kept, rest) = ("", value[...])
        while let start = rest.utf8.firstIndex(of: open).map(rest.utf8.index(after:)),
            let end = rest.utf8[start...].firstIndex(of: close)
        {
            kept += rest[..<start] + RedactedURL.withoutQuery(String(rest[start..<end])) + ">"
            rest = rest[rest.utf8.index(after: end)...]
        }
        // Without a closing bracket, the rest may still be part of a URL.
        return rest.utf8.contains(open) ? kept : kept + rest
    }
}
