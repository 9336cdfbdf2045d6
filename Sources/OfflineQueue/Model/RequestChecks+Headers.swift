internal import ClientCore
internal import NetwatchTransport

// The validation of header fields.

extension RequestChecks {
    /// The reasons why header fields are refused, by their lowercase names.
    ///
    /// Fields that contain secrets are not listed here, because they have a separate error code.
    private static let refusedFields: [String: String] = {
        let rows: [(String, [String])] = [
            ("the client sets it from the URL", ["host"]),
            ("the client sets it from the body", ["content-length", "transfer-encoding", "trailer"]),
            (
                "the client manages the connection",
                ["connection", "keep-alive", "upgrade", "te"]
            ),
            ("the client does not wait for an interim response", ["expect"]),
        ]
        return Dictionary(uniqueKeysWithValues: rows.flatMap { row in row.1.map { ($0, row.0) } })
    }()

    /// The fields that determine where the body ends. All versions have refused them, because a caller's value could
    /// contradict the client's value.
    private static let framingNames: Set<String> = ["content-length", "transfer-encoding"]

    /// Refuses invalid header fields, and fields that the caller must not set.
    ///
    /// An imported request may have been accepted by an older version of netwatch, which had fewer rules. In imported
    /// requests, only these are therefore refused: invalid names, secrets, fields that determine where the body ends,
    /// values with CR, LF or NUL, and too many bytes.
    ///
    /// - Throws: ``QueueError``: `invalidHeader`, `secretHeader`.
    static func checkHeaders(
        _ headers: [QueueRequest.Header],
        for purpose: Purpose = .store
    ) throws(QueueError) {
        let limit = QueueRequest.maximumHeadBytes
        let bytes = headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
        guard bytes <= limit else {
            throw QueueError(
                .invalidHeader,
                "the header fields have \(bytes) bytes in total; at most \(limit) are accepted"
            )
        }
        for header in headers {
            try checkHeaderName(header.name, for: purpose)
            if purpose == .import, HeaderText.isKept(header.value) { continue }
            if let fault = HTTPFieldValue.fault(of: header.value, in: header.name) {
                throw QueueError(.invalidHeader, fault)
            }
        }
    }

    /// Refuses a name that is not a token, and the name of a field that the caller must not set.
    static func checkHeaderName(_ name: String, for purpose: Purpose = .store) throws(QueueError) {
        if let fault = HTTPRequestRules.fault(ofHeaderName: name) { throw QueueError(.invalidHeader, fault) }
        let key = name.lowercased()
        // Development versions accepted the fields that are not in `standard`, so an import accepts them, too.
        let secrets = purpose == .import ? SecretHeaderFields.standard : SecretHeaderFields.request
        if secrets.contains(key) {
            guard purpose != .send else { return }
            throw QueueError(.secretHeader, "`\(name)` is refused: \(SecretRemoval.hint)")
        }
        let proxy = key.hasPrefix("proxy-") ? "it is for a proxy" : nil
        guard let reason = refusedFields[key] ?? proxy, purpose != .import || framingNames.contains(key)
        else {
            return
        }
        throw QueueError(.invalidHeader, "`\(name)` is refused: \(reason)")
    }
}

/// The stored form of header lines: `Name: value` and a newline for each. No value contains CR, LF or NUL.
package enum HeaderText {
    package static func encode(_ headers: [QueueRequest.Header]) -> String {
        headers.map { "\($0.name): \($0.value)\n" }.joined()
    }

    /// Returns whether ``decode(_:)`` restores a value unchanged, because the value contains no CR, LF or NUL.
    static func isKept(_ value: String) -> Bool { !value.utf8.contains { $0 == 0 || $0 == 10 || $0 == 13 } }

    /// The size in bytes of a header line as ``encode(_:)`` writes it.
    static func size(_ name: String, _ value: String) -> Int { name.utf8.count + value.utf8.count + 3 }

    /// Parses stored header lines.
    ///
    /// The text is split by bytes, not by characters. A value may begin with a combining character, which forms one
    /// `Character` with the space before it.
    package static func decode(_ text: String) -> [QueueRequest.Header] {
        text.utf8.split(separator: UInt8(ascii: "\n")).map { line in
            let name = line.prefix { $0 != UInt8(ascii: ":") }
            return QueueRequest.Header(
                name: String(Substring(name)),
                value: String(Substring(line.dropFirst(name.count + 2)))
            )
        }
    }
}

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
