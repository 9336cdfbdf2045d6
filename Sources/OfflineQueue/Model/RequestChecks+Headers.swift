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
