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
        let (row, content) = try openedForCaller(found)
        let options = try EnqueueOptions(row: row)
        if let fault = options.unreadable {
            throw QueueError(.idConflict, "the stored request with this id cannot be compared: \(fault)")
        }
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
        guard let body, let content = try? opened(found).content else { return true }
        return content.digest?.description == body.sha256
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

/// The store does not record which request replaced another one, so this searches for it.
extension StoreTransaction {
    /// Returns the id of the request that replaced a superseded request; `nil` if the store no longer knows it, or if
    /// the URL is damaged.
    ///
    /// Of the newer requests with the same lane and replace key, this is the oldest one that existed when the request
    /// was replaced, and that was not finished before. An imported request keeps the time at which another machine
    /// accepted it, because the import compares these times. If that machine's clock was ahead, the time may be later
    /// than the replacement, and the request is not found.
    func replacement(of row: StoredRow) throws -> String? {
        guard try row["state"] == QueuedRequest.State.superseded, let key = try row["replace_key"] as String?,
            let origin = try? Origin(url: try row["url"], allowsUserInfo: true)
        else { return nil }
        let candidates = try [finished(after: row, key, origin)] + unfinished(after: row, key, origin)
        let places = try candidates.compactMap(\.self).map {
            try (sequence: $0["seq"] as Int64, id: $0["id"] as String)
        }
        return places.min { $0.sequence < $1.sequence }?.id
    }

    /// Returns the waiting request and the request in flight that may have replaced a request.
    private func unfinished(after row: StoredRow, _ key: String, _ origin: Origin) throws -> [StoredRow] {
        guard let lane = try knownLane(of: LaneKey(finished: row, origin: origin))?.id else { return [] }
        let (sequence, end): (Int64, Int64) = try (row["seq"], row["finished_at"])
        return try [StoreStatements.findReplaceable, StoreStatements.findSentWithKey]
            .compactMap { try self.row($0, [lane, key]) }
            .filter { try ($0["seq"] as Int64) > sequence && ($0["created_at"] as Int64) <= end }
    }

    /// Returns the first finished request that may have replaced a request. The history does not store the scheme and
    /// the port of a lane.
    private func finished(after row: StoredRow, _ key: String, _ origin: Origin) throws -> StoredRow? {
        let constraints = EnqueueOptions(stored: try row["options"]).constraints
        let arguments: StatementArguments = try [
            "seq": row["seq"] as Int64, "end": row["finished_at"] as Int64, "key": key, "host": origin.host,
            "label": row["label"] as String, "mode": row["mode"] as String,
            "submitter": row["submitter"] as UInt32?,
        ]
        let found = try cursor(StoreStatements.finishedReplacements, arguments)
        while let candidate = try found.next() {
            if let other = try? Origin(url: try candidate["url"], allowsUserInfo: true), other == origin,
                EnqueueOptions(stored: try candidate["options"]).constraints == constraints
            {
                return candidate
            }
        }
        return nil
    }
}

extension StoreStatements {
    /// Selects the finished requests that may have replaced the request `seq`, which ended at `end`, in their order.
    /// They may belong to a lane with another scheme, port or constraints. Index: the one on `history.seq`.
    package static let finishedReplacements = """
        SELECT seq, id, url, options FROM history WHERE seq > :seq AND replace_key = :key
        AND (host, label, mode) = (:host, :label, :mode) AND submitter IS :submitter
        AND created_at <= :end AND finished_at >= :end ORDER BY seq
        """
}
