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
            let (row, content) = try opened(row)
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
            request.dependencies = try found.map { try $0["id"] }
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

/// Stores the requests of an import, which may come from this queue or another one.
extension StoreTransaction {
    mutating func restore(_ requests: [RestoredRequest]) throws -> [Restoration] {
        try environment.sealer.requireUnlocked()
        return try requests.map { try restore($0) }
    }

    private mutating func restore(_ restored: RestoredRequest) throws -> Restoration {
        let (new, archived) = (restored.new, restored.archived)
        if try isKnown(new.id) { return try conflict(of: restored).map(Restoration.conflict) ?? .known }
        // The request was known before, and its body was therefore not read.
        if case .gone = new.body { return .known }
        let lane = try lane(of: new.lane)
        guard archived.state != .dead else {
            try restoreDead(restored, in: lane)
            return .restored
        }
        try checkCapacity(for: new)
        var (stored, other) = (new, try waiting(like: restored, in: lane.id))
        // Requests of different users do not replace each other, also if an import gives them to one user.
        if restored.exportedSubmitter != archived.submitter, other != nil {
            (other, stored.options.replaceKey) = (nil, nil)
        }
        if let other {
            guard try other.row["created_at"] <= archived.created else { return .superseded }
            try move(other, by: .replaced)
        }
        let open = try openDependencies(archived.dependencies)
        let place = try insert(stored, of: restored, lane: lane.id)
        try setState(of: restored, at: place, open: open)
        for dependency in open ?? [] { try depend(place, on: dependency) }
        if let other { try transferDependents(of: other.sequence, to: place) }
        changedLanes.insert(lane.id)
        return .restored
    }

    /// Throws if an imported request exceeds the limits of the whole queue. The limit of a lane does not apply. It
    /// divides the queue among programs that enqueue, but an import only moves requests.
    private func checkCapacity(for new: NewRequest) throws {
        let room = try availableCapacity()
        let bytes = max(0, room.bytes - stagedLoad.bytes)
        guard room.requests > 0, bytes >= new.size, room.diskBytes >= 2 * new.rowSize else {
            throw QueueError(
                .queueFull,
                "the import does not fit: the queue has room for \(room.requests) more requests and \(bytes) more "
                    + "bytes, and the disk for \(room.diskBytes) bytes"
            )
        }
    }

    /// Returns the waiting request with the same replace key as the imported request; `nil` if there is none. Of the
    /// two, only the request that was enqueued later is kept.
    private func waiting(like restored: RestoredRequest, in lane: Int64) throws -> StoredRequest? {
        try restored.archived.replaceKey.flatMap { try waiting(withKey: $0, inLane: lane) }
    }

    /// Stores the request of an import as pending, and returns its number.
    ///
    /// - Parameter new: The request, with the options to store.
    private func insert(_ new: NewRequest, of restored: RestoredRequest, lane: Int64) throws -> Int64 {
        let archived = restored.archived
        // Later times are reduced, because the clock of the other machine may have been wrong.
        let latest = (now + RequestChecks.longestTime).milliseconds
        let scheduled = archived.scheduled.map { min($0, latest) }
        let offset: Int64 = try row("SELECT clock_offset FROM meta")!["clock_offset"]
        let times = RequestTimes(
            due: max(now.milliseconds, scheduled ?? 0),
            scheduled: scheduled,
            created: archived.created,
            life: archived.life,
            // Boot 0 is never the current boot, so the wall clock decides when the request expires. The statement adds the
            // clock's offset to the expiry time, so it is subtracted here.
            boot: 0,
            bootExpiry: min(archived.expires, latest) - offset
        )
        return try insert(new, lane: lane, state: .pending, size: restored.new.size, times)
    }

    /// Sets the state of a request that ``insert(_:of:lane:)`` has stored as pending.
    ///
    /// - Parameter open: The sequence numbers of the dependencies that are not delivered yet; `nil` if a dependency is
    ///   unknown or will never be delivered.
    private func setState(of restored: RestoredRequest, at place: Int64, open: [Int64]?) throws {
        let archived = restored.archived
        let (state, reason): (QueuedRequest.State, String?) =
            switch archived.state {
            case .pending where open == nil, .blocked where open == nil, .held where open == nil:
                (.held, HoldReason.dependency.rawValue)
            case .pending where open?.isEmpty == false, .blocked where open?.isEmpty == false: (.blocked, nil)
            case .held: (.held, archived.holdReason)
            case .pending, .blocked, .dead: (.pending, nil)
            }
        try execute(
            """
            UPDATE request SET state = ?, hold_reason = ?, attempts = ?, deferrals = ?, last_status = ?, last_error = ?
            WHERE seq = ?
            """,
            [
                state.rawValue, reason, archived.attempts, archived.deferrals, archived.lastStatus,
                archived.lastError, place,
            ]
        )
    }

    /// Stores a dead request. It is stored as pending and then given up, so that the counters and the history are
    /// updated in the usual way.
    private mutating func restoreDead(_ restored: RestoredRequest, in lane: StoredLane) throws {
        let (archived, options) = (restored.archived, restored.new.options)
        var stored = restored.new
        // A waiting request may have the same replace key, which must be unique. The request has ended in the queue that
        // exported it, which has reported that end: with its tag and its webhook, the end would be reported again.
        (stored.options.replaceKey, stored.options.tag, stored.options.onDone) = (nil, nil, nil)
        let place = try insert(stored, of: restored, lane: lane.id)
        try setState(of: restored, at: place, open: [])
        let reason = archived.lastError ?? "given up in another queue"
        try move(try request(place)!, by: .givenUp(.imported, reason: reason))
        try execute(
            "UPDATE history SET replace_key = ?, tag = ?, options = ?, is_droppable = ? WHERE seq = ?",
            [options.replaceKey, options.tag, options.stored, restored.new.isDroppable, place]
        )
    }
}

// MARK: - Dependencies

extension StoreTransaction {
    /// Returns the sequence numbers of the dependencies that are not delivered yet; `nil` if one is unknown, or has
    /// ended without being delivered.
    private func openDependencies(_ ids: [String]) throws -> [Int64]? {
        var places: [Int64] = []
        for id in ids {
            if let row = try row("SELECT seq FROM request WHERE id = ?", [id]) {
                places.append(try row["seq"])
            } else if try row("SELECT 1 FROM history WHERE id = ? AND state = 'delivered'", [id]) == nil {
                return nil
            }
        }
        return places
    }

    private func depend(_ place: Int64, on other: Int64) throws {
        try execute("INSERT OR IGNORE INTO depends (seq, on_seq) VALUES (?, ?)", [place, other])
    }

    /// Restores dependencies after all requests of an import are stored. In an export, a request may come before the
    /// requests on which it depends. This happens when a dependency was replaced by a newer request.
    mutating func link(_ links: [DependencyLink]) throws {
        for link in links {
            guard let request = try request(id: link.id), request.state.phase == .held(.dependency),
                let places = try openDependencies(link.dependencies)
            else { continue }
            for place in places { try depend(request.sequence, on: place) }
            if let cycle = try database.cycle(of: request.sequence, dependingOn: places) {
                try leaveHeld(request, because: cycle)
                continue
            }
            let due = try request.earliest(from: now)
            try move(request, by: .released([.dependency], now: due, isBlocked: !places.isEmpty))
            if link.isHeld, let linked = try self.request(request.sequence) { try move(linked, by: .held) }
            changedLanes.insert(request.lane)
        }
    }

    /// Removes the dependencies of a request that is held for `dependency`. With them, it would wait for itself.
    ///
    /// The importer has refused cycles within the export. This one includes requests that the queue already had, or
    /// that were enqueued meanwhile.
    private func leaveHeld(_ request: StoredRequest, because cycle: String) throws {
        try deleteDependencies(of: request.sequence)
        try recordFailedDependency(of: request.sequence, cycle)
    }
}
