internal import GRDB

/// The parts of a stored request that are encrypted together: its header fields, its idempotency key, and the SHA-256 of
/// its body.
struct RequestContent: Hashable {
    /// The header lines in the form of ``HeaderText``, without the idempotency key.
    var headers = ""
    var key: KeyHeader?
    /// The SHA-256 of the body; `nil` without a body. It remains when the body is deleted.
    var digest: SHA256Digest?
}

extension RequestContent {
    private static let quoted = "quoted "

    /// The stored form: a line with the SHA-256, a line with the key, and the header lines. The first two are empty if
    /// there is none. `quoted ` precedes the name of a key that is sent in quotes.
    var stored: String {
        let key = key.map { ($0.isQuoted ? Self.quoted : "") + "\($0.name): \($0.value)" }
        return "\(digest.map { "\($0)" } ?? "")\n\(key ?? "")\n\(headers)"
    }

    /// Parses the stored form.
    ///
    /// - Throws: ``DamagedColumn``.
    init(stored text: String) throws(DamagedColumn) {
        let lines = text.utf8.split(separator: 10, maxSplits: 2, omittingEmptySubsequences: false)
        guard lines.count == 3 else { throw Self.damaged(text) }
        if !lines[0].isEmpty {
            guard let digest = SHA256Digest(String(Substring(lines[0]))) else { throw Self.damaged(text) }
            self.digest = digest
        }
        if !lines[1].isEmpty {
            let isQuoted = lines[1].starts(with: Self.quoted.utf8)
            let line = lines[1].dropFirst(isQuoted ? Self.quoted.utf8.count : 0)
            guard let field = HeaderText.decode(String(Substring(line))).first, !field.name.isEmpty else {
                throw Self.damaged(text)
            }
            key = KeyHeader(name: field.name, value: field.value, isQuoted: isQuoted)
        }
        headers = String(Substring(lines[2]))
    }

    private static func damaged(_ text: String) -> DamagedColumn {
        DamagedColumn(name: "content", found: .string(text))
    }
}
