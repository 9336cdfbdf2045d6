internal import Foundation
internal import GRDB

/// Requests come back that were exported elsewhere, or here before something happened.
extension StoreTransaction {
    /// No clock of another machine is believed further ahead.
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
        try checkRoom(for: new)
        let other = try waiting(like: restored, in: lane.id)
        if let other {
            guard try other.row["created_at"] <= archived.created else { return .superseded }
            try move(other, by: .replaced)
        }
        let open = try openDependencies(archived.after)
        let place = try insert(restored, lane: lane.id, replaceKey: archived.replaceKey)
        try setState(of: restored, at: place, open: open)
        for dependency in open ?? [] { try depend(place, on: dependency) }
        if let other { try succeed(other.sequence, by: place) }
        changedLanes.insert(lane.id)
        return .restored
    }

    /// A limit of the queue as a whole; that of the lane is for those who share the queue, not for whoever moves it.
    private func checkRoom(for new: NewRequest) throws {
        let room = try archiveRoom()
        guard room.requests > 0, room.bytes >= new.size, room.diskBytes >= 2 * new.rowSize else {
            throw QueueError(
                .queueFull,
                "the queue has room for \(room.requests) requests and \(room.bytes) bytes"
            )
        }
    }

    /// Of two with the same key the one that was enqueued later stays.
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
                // As if it came from another boot: its end is a moment of the wall clock, to which the statement
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

    /// - Parameter open: The places of what it waits for; `nil` when that is not all known.
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

    /// By way of the state that it was given up from, so that the history counts it like any other.
    private mutating func restoreDead(_ restored: RestoredRequest, in lane: StoredLane) throws {
        let archived = restored.archived
        // Somebody else may have the replace key by now.
        let place = try insert(restored, lane: lane.id, replaceKey: nil)
        try setState(of: restored, at: place, open: [])
        let reason = archived.lastError ?? "it was given up elsewhere"
        try move(try request(place)!, by: .givenUp(.imported, reason: reason))
        try execute("UPDATE history SET replace_key = ? WHERE seq = ?", [archived.replaceKey, place])
    }
}

// MARK: - Dependencies

extension StoreTransaction {
    /// The places of those that are not delivered yet; `nil` when one of them is not known, or is over otherwise.
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

    /// What a request waits for may stand behind it in an export: what was replaced gave its dependents to the newer
    /// one. So they are linked once all are there.
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
