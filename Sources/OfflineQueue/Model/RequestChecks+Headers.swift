internal import ClientCore
internal import NetwatchTransport

// The rules for header fields, with one wording for all refusals.

extension RequestChecks {
    /// The reasons for refusing a field, by its lowercase name. Secrets have a separate error code.
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

    /// Refused by all versions: these fields say where the body ends, and a second value could contradict the client's.
    private static let framingNames: Set<String> = ["content-length", "transfer-encoding"]

    /// Refuses header fields that the caller may not set.
    ///
    /// Of an imported request, only secrets, the framing fields, and values with CR, LF or NUL are refused, as by
    /// versions before 4.
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
                "the header fields have \(bytes) bytes; at most \(limit) are accepted"
            )
        }
        for header in headers {
            try checkHeaderName(header.name, for: purpose)
            let isFit =
                purpose == .import ? HeaderText.isKept(header.value) : HTTPFieldValue.isValid(header.value)
            guard isFit else {
                throw QueueError(.invalidHeader, HTTPFieldValue.refusal(header.name, header.value))
            }
        }
    }

    /// Refuses a name that is not a token, and a field that the caller may not set.
    static func checkHeaderName(_ name: String, for purpose: Purpose = .store) throws(QueueError) {
        guard HTTPToken.isValid(name) else {
            throw QueueError(
                .invalidHeader,
                "the header name \(quoted(name)) is not a token of RFC 9110, like X-Note"
            )
        }
        let key = name.lowercased()
        if SecretHeaderFields.request.contains(key) {
            guard purpose != .send else { return }
            throw QueueError(.secretHeader, "`\(name)` is refused: secrets are not stored")
        }
        let proxy = key.hasPrefix("proxy-") ? "it is for a proxy" : nil
        guard let reason = refusedFields[key] ?? proxy, purpose != .import || framingNames.contains(key)
        else {
            return
        }
        throw QueueError(.invalidHeader, "`\(name)` is refused: \(reason)")
    }
}
