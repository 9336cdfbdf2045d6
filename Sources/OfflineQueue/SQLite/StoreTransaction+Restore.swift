internal import Foundation
internal import GRDB

/// Restores requests from an export of this or another queue.
extension StoreTransaction {
    /// The maximum time in the future that is accepted from another machine's clock.
    private static let furthest: Duration = .seconds(366 * 86_400)

    mutating func restore(_ requests: [RestoredRequest]) throws -> [Restoration] {
        try requests.map { try restore($0) }
    }

    private mutating func restore(_ restored: RestoredRequest) throws -> Restoration {
        let (new, archived) = (restored.new, restored.archived)
        guard try !isKnown(new.id) else { return .known }
        let lane = try lane(of: new.lane)
        guard archived.state != .dead else {
            try restoreDead(restored, in: lane)
            return .restored
        }
        try checkCapacity(for: new)
        let other = try waiting(like: restored, in: lane.id)
        if let other {
            guard try other.row["created_at"] <= archived.created else { return .superseded }
            try move(other, by: .replaced)
        }
        let open = try openDependencies(archived.after)
        let place = try insert(restored, lane: lane.id, replaceKey: archived.replaceKey)
        try setState(of: restored, at: place, open: open)
        for dependency in open ?? [] { try depend(place, on: dependency) }
        if let other { try transferDependents(of: other.sequence, to: place) }
        changedLanes.insert(lane.id)
        return .restored
    }

    /// Checks the limits of the whole queue. The lane limit does not apply: it divides the queue among its callers, and
    /// an import only moves requests.
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

    /// Returns the waiting request with the same replace key. The one of the two that was enqueued later is kept.
    private func waiting(like restored: RestoredRequest, in lane: Int64) throws -> StoredRequest? {
        try restored.archived.replaceKey.flatMap { try waiting(withKey: $0, inLane: lane) }
    }

    private func insert(_ restored: RestoredRequest, lane: Int64, replaceKey: String?) throws -> Int64 {
        let (new, archived) = (restored.new, restored.archived)
        let latest = (now + Self.furthest).milliseconds
        let scheduled = archived.scheduled.map { min($0, latest) }
        var file: SpooledBody?
        if case .spooled(let body) = new.body { file = body }
        let offset: Int64 = try row("SELECT clock_offset FROM meta")!["clock_offset"]
        try execute(
            StoreStatements.insertRequest,
            [
                new.id, lane, "pending", max(now.milliseconds, scheduled ?? 0), scheduled,
                new.options.priority,
                // The request is stored as one of another boot. Its end is a wall clock time, to which the statement
                // adds the offset.
                archived.created, archived.life, 0, min(archived.expires, latest) - offset,
                new.options.maximumAttempts,
                new.method, new.url,
                new.headers, new.size, new.body.size, file?.name, file?.digest.description, new.key?.name,
                new.key?.value, new.key?.isQuoted ?? false, archived.atMostOnce, replaceKey, archived.expect,
                new.options.timeouts.stored,
            ]
        )
        let sequence = database.lastInsertedRowID
        if case .inline(let data) = new.body { try execute(StoreStatements.insertBody, [sequence, data]) }
        return sequence
    }

    /// - Parameter open: The sequence numbers of undelivered dependencies; `nil` when not all dependencies are known.
    private func setState(of restored: RestoredRequest, at place: Int64, open: [Int64]?) throws {
        let archived = restored.archived
        let (state, reason): (QueuedRequest.State, String?) =
            switch archived.state {
            case .blocked where open == nil, .held where open == nil: (.held, HoldReason.dependency.rawValue)
            case .blocked where open?.isEmpty == false: (.blocked, nil)
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

    /// Stores a dead request as a pending one and then gives it up, so that the history counts it like any other.
    private mutating func restoreDead(_ restored: RestoredRequest, in lane: StoredLane) throws {
        let archived = restored.archived
        // Another request may have the replace key by now.
        let place = try insert(restored, lane: lane.id, replaceKey: nil)
        try setState(of: restored, at: place, open: [])
        let reason = archived.lastError ?? "given up in another queue"
        try move(try request(place)!, by: .givenUp(.imported, reason: reason))
        try execute("UPDATE history SET replace_key = ? WHERE seq = ?", [archived.replaceKey, place])
    }
}

// MARK: - Dependencies

extension StoreTransaction {
    /// Returns the sequence numbers of the undelivered dependencies; `nil` when one is unknown or ended undelivered.
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

    /// Links dependencies after all requests are stored. In an export a dependency may follow its dependents, because a
    /// replaced request passes its dependents on to the newer one.
    mutating func link(_ links: [DependencyLink]) throws {
        for link in links {
            guard let request = try request(id: link.id), request.state.phase == .held(.dependency),
                let places = try openDependencies(link.after)
            else { continue }
            for place in places { try depend(request.sequence, on: place) }
            let due = try request.earliest(from: now)
            try move(request, by: .released([.dependency], now: due, isBlocked: !places.isEmpty))
            if link.isHeld, let linked = try self.request(request.sequence) { try move(linked, by: .held) }
            changedLanes.insert(request.lane)
        }
    }
}
