internal import Foundation
internal import GRDB
internal import Glibc

/// Checks requests whose id is already stored. Only the same request may be enqueued again with a known id.
extension StoreTransaction {
    private static let columns = """
        SELECT id, key_id, method, url, content, is_repeatable, body_bytes, label, mode, priority, replace_key, tag,
        credential, submitter, options
        """

    private static let content = """
        \(columns) FROM request JOIN (SELECT id AS lane, label, mode FROM lane) ON lane = lane_id
        WHERE id = :id
        UNION ALL \(columns) FROM history WHERE id = :id
        """

    /// Compares a new request with the stored one of the same id: its lane, everything that the server would receive,
    /// and the options that a caller gives again when it repeats a call. The idempotency key and the credential are not
    /// compared, because the queue or a user may have changed them. Times are not compared, because callers give them
    /// relative to the time of the call. The settings of the attempts are not compared, because they only tune them.
    ///
    /// - Throws: ``QueueError`` with `idConflict`, whose message lists what differs, or with `encryptionKeyMissing` if
    ///   the stored request cannot be compared.
    func checkContent(of new: NewRequest) throws {
        guard let found = try row(Self.content, ["id": new.id]) else { return }
        let row = try openedForCaller(found)
        let (content, options) = (try RequestContent(row), try EnqueueOptions(row: row))
        let isSame: [(name: String, Bool)] = [
            ("method", try row["method"] == new.method),
            ("URL", try row["url"] == new.url),
            ("headers", Self.lines(content.headers) == Self.lines(new.headers)),
            ("body", try isSame(new.body, row, content)),
            ("lane", try row["label"] == new.lane.label),
            ("FIFO", try row["mode"] == new.lane.mode.rawValue),
            ("priority", options.priority == new.options.priority),
            ("at-most-once", options.isAtMostOnce == new.options.isAtMostOnce),
            ("replace key", options.replaceKey == new.options.replaceKey),
            ("expectation", options.expectation == new.options.expectation),
            ("tag", options.tag == new.options.tag),
            ("webhook", options.onDone == new.options.onDone),
            ("constraints", options.constraints == new.options.constraints),
        ]
        let different = isSame.filter { !$0.1 }.map(\.name)
        guard !different.isEmpty else { return }
        throw QueueError(
            .idConflict,
            "the id \(quoted(new.id)) already belongs to a request that differs in: "
                + "\(different.joined(separator: ", ")); choose another id, or repeat the first request unchanged"
        )
    }

    /// Returns why an imported request is not the stored one with the same id; `nil` if it is.
    ///
    /// It is the same if both have the same submitter and the same content. Otherwise a user who knows the ids of an
    /// export could enqueue other requests with them, and the import would skip those of the export. The submitter of
    /// the stored request is the one in the export, if the queue has written it, or the one of an earlier import: root,
    /// or the user of the service.
    func conflict(of restored: RestoredRequest) throws -> String? {
        let archived = restored.archived
        guard let found = try row(Self.content, ["id": archived.id]) else { return nil }
        let owner: UInt32? = try found["submitter"]
        guard [archived.submitter, restored.exportedSubmitter, 0, geteuid()].contains(owner) else {
            let words = owner.map { "of the user \($0)" } ?? "without a submitter"
            return "the id belongs to a request \(words)"
        }
        let isSame: [(name: String, Bool)] = [
            ("method", try found["method"] == archived.method),
            ("URL", try Self.withoutSecrets(found["url"]) == archived.url),
            ("body", try isSame(archived.body, found)),
            ("lane", try found["label"] == archived.lane),
            ("FIFO", try (found["mode"] == LaneKey.Mode.fifo) == archived.fifo),
        ]
        let different = isSame.filter { !$0.1 }.map(\.name)
        guard !different.isEmpty else { return nil }
        return "the id belongs to a request that differs in: \(different.joined(separator: ", "))"
    }

    /// Returns a URL as exports contain it.
    private static func withoutSecrets(_ url: String) -> String {
        SecretRemoval.apply(to: QueueRequest(method: "GET", url: url)).url
    }

    /// Returns whether the bodies are the same, as far as is known. The hash of a stored body is not known without its
    /// encryption key.
    private func isSame(_ body: ArchivedRequest.Body?, _ found: StoredRow) throws -> Bool {
        guard try found["body_bytes"] == body?.bytes ?? 0 else { return false }
        guard let body, let row = try? opened(found) else { return true }
        return try RequestContent(row).digest?.description == body.sha256
    }

    /// Returns the header lines in sorted order, because the order of header fields does not count as a difference.
    private static func lines(_ headers: String) -> [String] {
        HeaderText.decode(headers).map { "\($0.name): \($0.value)" }.sorted()
    }

    /// Returns whether the bodies are the same, as far as is known.
    private func isSame(_ body: StoredBody, _ row: StoredRow, _ content: RequestContent) throws -> Bool {
        if case .gone(let size) = body { return try size.map { try row["body_bytes"] == $0 } ?? true }
        guard try row["body_bytes"] == body.size else { return false }
        switch body {
        case .spooled(let file): return content.digest == file.digest
        case .inline(let data): return content.digest == (try SHA256.digest(of: data))
        case .none, .unreadable, .changed, .gone: return true
        }
    }
}
