internal import Foundation
internal import GRDB

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
        let lane = try lane(of: restored.lane)
        guard archived.state != .dead else {
            try restoreDead(restored, in: lane)
            return .restored
        }
        try checkCapacity(for: new)
        var (other, replaceKey) = (try waiting(like: restored, in: lane.id), archived.replaceKey)
        // Requests of different users do not replace each other, also if an import gives them to one user.
        if restored.exportedSubmitter != archived.submitter, other != nil { (other, replaceKey) = (nil, nil) }
        if let other {
            guard try other.row["created_at"] <= archived.created else { return .superseded }
            try move(other, by: .replaced)
        }
        let open = try openDependencies(archived.after)
        let place = try insert(restored, lane: lane.id, replaceKey: replaceKey)
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

    private func insert(_ restored: RestoredRequest, lane: Int64, replaceKey: String?) throws -> Int64 {
        let (new, archived) = (restored.new, restored.archived)
        // Later times are reduced, because the clock of the other machine may have been wrong.
        let latest = (now + RequestChecks.longestTime).milliseconds
        let scheduled = archived.scheduled.map { min($0, latest) }
        let content = try SealedContent(new, by: sealerForWriting())
        let offset: Int64 = try row("SELECT clock_offset FROM meta")!["clock_offset"]
        try execute(
            StoreStatements.insertRequest,
            [
                new.id, lane, "pending", max(now.milliseconds, scheduled ?? 0), scheduled,
                new.options.priority,
                // Boot 0 is never the current boot, so the wall clock decides when the request expires. The statement
                // adds the clock's offset to the expiry time, so it is subtracted here.
                archived.created, archived.life, 0, min(archived.expires, latest) - offset,
                new.options.maximumAttempts,
                new.method, new.url,
                content.headers, new.size, new.body.size, new.body.fileName, content.digest, new.key?.name,
                content.keyValue, new.key?.isQuoted ?? false, archived.atMostOnce, replaceKey,
                archived.expect,
                new.options.attemptSettings.stored, new.options.credential,
                // A dead request has ended in the queue that exported it, which has reported that end. Its tag and its
                // webhook are set afterwards, so that its end is not reported again.
                archived.state == .dead ? nil : archived.tag,
                archived.state == .dead ? nil : archived.onDone?.stored, archived.webhookOf,
                new.options.constraints.isEmpty ? nil : new.options.constraints.description,
                content.keyID, content.bodyKey, archived.submitter, content.inlineDigest,
            ]
        )
        let sequence = database.lastInsertedRowID
        if let body = content.body {
            try execute(StoreStatements.insertBody, [sequence, body, content.bodyDigest])
        }
        return sequence
    }

    /// Sets the state of a request that ``insert(_:lane:replaceKey:)`` has stored as pending.
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
        let archived = restored.archived
        // A waiting request may have the same replace key, which must be unique.
        let place = try insert(restored, lane: lane.id, replaceKey: nil)
        try setState(of: restored, at: place, open: [])
        let reason = archived.lastError ?? "given up in another queue"
        try move(try request(place)!, by: .givenUp(.imported, reason: reason))
        try execute(
            "UPDATE history SET replace_key = ?, tag = ?, on_done = ? WHERE seq = ?",
            [archived.replaceKey, archived.tag, archived.onDone?.stored, place]
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
                let places = try openDependencies(link.after)
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
