internal import Foundation
internal import GRDB

/// Reads the rows of an export.
extension StoreTransaction {
    /// The maximum number of rows in one page, even if they are small.
    private static let longestPage = 512

    func archivedRows(after cursor: ExportCursor, bytes: Int) throws -> [ArchivedRow] {
        let sql =
            switch cursor.part {
            case .waiting: Self.waitingRows
            case .dead: Self.deadRows
            }
        let found = try self.cursor(sql, ["after": cursor.position, "limit": Self.longestPage])
        var (rows, size, last): ([ArchivedRow], Int, Int64) = ([], 0, cursor.position)
        while size < bytes, let row = try found.next() {
            size += row.approximateSize
            last = try row.place("position", after: last)
            rows.append(archived(row, ExportCursor(part: cursor.part, position: last)))
        }
        return rows
    }

    private static let waitingRows = """
        SELECT \(ArchivedRequest.columns(of: "request")), seq AS position, label, mode, bytes
        FROM request CROSS JOIN (SELECT id AS lane, label, mode FROM lane) ON lane = lane_id LEFT JOIN body USING (seq)
        WHERE seq > :after ORDER BY seq LIMIT :limit
        """

    private static let deadRows = """
        SELECT \(ArchivedRequest.columns(of: "history")), position, label, mode, bytes FROM history LEFT JOIN body USING (seq)
        WHERE position > :after AND state = 'dead' AND is_whole = 1 ORDER BY position LIMIT :limit
        """

    private func archived(_ row: StoredRow, _ cursor: ExportCursor) -> ArchivedRow {
        let id = (try? row["id"]) ?? "number \(cursor.position)"
        do {
            let row = try opened(row)
            let content = try RequestContent(row)
            var request = try ArchivedRequest(row, content).withoutSecrets()
            let body = try StoredBody(whole: row, content.digest)
            try addDependencies(to: &request, at: try row["seq"])
            request.body = try ArchivedRequest.Body(body)
            _ = try request.validated()
            return ArchivedRow(cursor: cursor, id: id, content: .success((request, body)))
        } catch {
            return ArchivedRow(cursor: cursor, id: id, content: .failure(QueueError(reading: error)))
        }
    }

    /// Adds the dependencies of a request. If it would wait for itself because of them, it is held instead, because an
    /// import refuses cycles.
    private func addDependencies(to request: inout ArchivedRequest, at sequence: Int64) throws(QueueError) {
        guard request.mayWaitForOthers else { return }
        do {
            let found = try rows(StoreStatements.dependencies, [sequence])
            request.after = try found.map { try $0["id"] }
            let later = try found.map { try $0["on_seq"] as Int64 }.filter { $0 > sequence }
            guard let cycle = try database.cycle(of: sequence, dependingOn: later) else { return }
            request.holdWithoutDependencies(.dependency, cycle)
        } catch {
            throw QueueError(.storeUnusable, "the request's dependencies cannot be read: \(error)")
        }
    }

    func known(_ ids: [String]) throws -> Set<String> {
        try Set(ids.filter { try isKnown($0) })
    }

    func availableCapacity() throws -> AvailableCapacity {
        let (limit, load) = (settings.limits, try row(StoreStatements.load)!)
        return AvailableCapacity(
            requests: max(0, limit.requests - (try load["requests"])),
            bytes: max(0, limit.bytes - (try load["bytes"])),
            diskBytes: try availableDiskSpace().map { max(0, $0.free - $0.reserve) } ?? .max
        )
    }
}

extension ArchivedRequest.Body {
    init?(_ body: StoredBody) throws(QueueError) {
        switch body {
        case .none, .unreadable, .changed, .gone: return nil
        case .spooled(let file): self.init(bytes: file.size, sha256: file.digest.description)
        case .inline(let data):
            self.init(bytes: Int64(data.count), sha256: try SHA256.digest(of: data).description)
        }
    }
}
