internal import Foundation
internal import GRDB

/// Checks of known ids. An id belongs to one request, and only the same request may be enqueued under it again.
extension StoreTransaction {
    private static let columns = """
        SELECT method, url, headers, body_bytes, body_sha256, label, mode, bytes
        """

    private static let content = """
        \(columns) FROM request JOIN (SELECT id AS lane, label, mode FROM lane) ON lane = lane_id
        LEFT JOIN body USING (seq) WHERE id = :id
        UNION ALL \(columns) FROM history LEFT JOIN body USING (seq) WHERE id = :id
        """

    /// Compares the lane and what the server would receive. The idempotency key is not compared, because it may have
    /// been renewed.
    ///
    /// - Throws: ``QueueError`` with `idConflict`, which says what differs.
    func checkContent(of new: NewRequest) throws {
        guard let row = try row(Self.content, ["id": new.id]) else { return }
        let isSame: [(name: String, Bool)] = [
            ("method", try row["method"] == new.method),
            ("URL", try row["url"] == new.url),
            ("headers", try Self.lines(row["headers"]) == Self.lines(new.headers)),
            ("body", try isSame(new.body, row)),
            ("lane", try row["label"] == new.lane.label),
            ("order", try row["mode"] == new.lane.mode.rawValue),
        ]
        let different = isSame.filter { !$0.1 }.map(\.name)
        guard !different.isEmpty else { return }
        throw QueueError(
            .idConflict,
            "the id \(quoted(new.id)) is used by another request; different: \(different.joined(separator: ", "))"
        )
    }

    /// Returns the header lines, sorted, because the order of header fields does not matter.
    private static func lines(_ headers: String) -> [String] {
        HeaderText.decode(headers).map { "\($0.name): \($0.value)" }.sorted()
    }

    /// Compares bodies. After a body was removed only its size is known, and the hash of a spooled one.
    private func isSame(_ body: StoredBody, _ row: StoredRow) throws -> Bool {
        if case .gone(let size) = body { return try size.map { try row["body_bytes"] == $0 } ?? true }
        guard try row["body_bytes"] == body.size else { return false }
        switch body {
        case .spooled(let file):
            return try (row["body_sha256"] as String?).map { $0 == file.digest.description } ?? true
        case .inline(let data): return try (row["bytes"] as Data?).map { $0 == data } ?? true
        case .none, .unreadable, .gone: return true
        }
    }
}
