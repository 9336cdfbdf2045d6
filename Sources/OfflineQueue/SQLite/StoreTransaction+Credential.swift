internal import ClientCore
internal import Foundation
internal import GRDB

/// Changes the credentials of requests, and releases requests that are held because of their credential.
extension StoreTransaction {
    /// The maximum number of held requests that one transaction releases.
    static let releasedAtOnce = 256

    mutating func setCredential(_ name: String, of id: String) throws -> EditResult {
        guard let request = try request(id: id) else {
            let finished = try row("SELECT state FROM history WHERE id = ?", [id])
            return try finished.map { .refused(try $0["state"]) } ?? .unknown
        }
        guard request.state.isWaiting else { return .refused(request.state.name) }
        try replaceCredential(of: request, with: name)
        switch request.state.phase {
        case .held(.auth): try releaseForCredential(request)
        case .pending:
            let due = try request.earliest(from: now).milliseconds
            try execute(
                "UPDATE request SET next_at = min(next_at, ?) WHERE seq = ?",
                [due, request.sequence]
            )
            changedLanes.insert(request.lane)
        default: break
        }
        return .done(try self.request(id: id)?.state.name ?? request.state.name)
    }

    /// Stores the new credential, and removes the signature of a signed URL. The content of an encrypted request is
    /// encrypted again, because it is bound to the URL and the credential.
    ///
    /// - Throws: ``QueueError`` if the request is encrypted, and cannot be read or encrypted.
    private func replaceCredential(of request: StoredRequest, with name: String) throws {
        let row = try openedForCaller(request.row)
        let url: String = try row["url"]
        let clean = SecretQueryItems.removing(from: url)
        try execute(
            "UPDATE request SET url = ?, credential = ? WHERE seq = ?",
            [clean, name, request.sequence]
        )
        let changed = row.replacing("url", with: clean).replacing("credential", with: name)
        try write(try RequestContent(row), to: changed)
        try shrink(request, by: Int64(url.utf8.count - clean.utf8.count))
    }

    /// Reduces the stored size of a request, and the counters that include this size. Triggers update these only when a
    /// row is inserted or deleted.
    private func shrink(_ request: StoredRequest, by bytes: Int64) throws {
        guard bytes > 0 else { return }
        let removed = min(bytes, try request.row["size"])
        try execute("UPDATE request SET size = size - ? WHERE seq = ?", [removed, request.sequence])
        try execute("UPDATE lane SET bytes = bytes - ? WHERE id = ?", [removed, request.lane])
        try execute("UPDATE meta SET bytes = bytes - ?", [removed])
    }

    /// Releases the next requests that are held because of a credential.
    ///
    /// - Parameters:
    ///   - time: The time before which the last attempt must have ended; `nil` for any.
    ///   - place: The number of the request after which the search begins.
    /// - Returns: The number of the last released request; `nil` if there may be no more.
    mutating func releaseRequests(
        heldForCredential name: String,
        triedBefore time: ContinuousClock.Instant?,
        after place: Int64
    ) throws -> Int64? {
        let held = try rows(
            StoreStatements.heldForCredential,
            [
                "name": name, "latest": time.map(date(of:))?.milliseconds ?? .max, "after": place,
                "limit": Self.releasedAtOnce,
            ]
        )
        for row in held { try releaseForCredential(try StoredRequest(row: row)) }
        return held.count < Self.releasedAtOnce ? nil : try held.last?.place("seq", after: place)
    }

    /// Returns the date of a recent moment as the stored dates show it, rounded up.
    private func date(of moment: ContinuousClock.Instant) -> Timestamp {
        let elapsed = moment.duration(to: .now)
        return environment.clock.read().wall - elapsed + .milliseconds(1)
    }

    private mutating func releaseForCredential(_ request: StoredRequest) throws {
        let isBlocked = try isBlocked(request.sequence)
        let due = try request.earliest(from: now)
        try move(request, by: .credentialChanged(now: due, isBlocked: isBlocked))
        changedLanes.insert(request.lane)
    }
}

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
