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
        let open = try openDependencies(archived.after)
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

/// Releases requests that a server rejected because of their credential, although the credential has not changed.
extension StoreTransaction {
    /// A lane whose requests may be tried.
    private struct Candidate {
        let id: Int64
        let isParallel: Bool
        let isPaused: Bool

        init(row: StoredRow) throws {
            id = try row["id"]
            isParallel = try row["mode"] == LaneKey.Mode.parallel.rawValue
            isPaused = try row["is_paused"]
        }
    }

    /// Releases the next request of a scope. Its attempt shows whether the server accepts the credential now.
    ///
    /// - Parameter last: The request that was released before. While it waits or is in flight, no other of its lane is
    ///   released. It may wait for long, for example for a constraint that the requests of other lanes do not have.
    mutating func releaseNext(of scope: CredentialScope, after last: HeldPlace?) throws -> ReleasedRequests {
        let lanes = try lanes(of: scope.origin)
        let tried = try last.flatMap { try isTried($0) ? $0.lane : nil }
        for (lane, after) in Self.turns(lanes, after: last) where !lane.isPaused && lane.id != tried {
            let found = try row(
                StoreStatements.nextRejected,
                [
                    "lane": lane.id, "after": after, "credential": scope.credential,
                    "parallel": lane.isParallel,
                ]
            )
            if let found { return .some(last: try releaseRejected(found)) }
        }
        if tried != nil { return .waiting }
        for lane in lanes where lane.isPaused {
            if try !rejected(scope, inLane: lane.id, after: 0, limit: 1).isEmpty { return .waiting }
        }
        return .none
    }

    /// Returns whether a request that was released may still be sent, so that its attempt has not ended.
    private func isTried(_ place: HeldPlace) throws -> Bool {
        guard let request = try request(place.sequence) else { return false }
        return switch request.state.phase {
        case .pending, .inflight: try lane(request.lane)?.isPaused == false
        case .staging, .blocked, .held, .finished: false
        }
    }

    /// Returns the lanes, each with the row number after which its next request is searched: the rest of the lane of the
    /// last request, the other lanes in turn, and at the end the lane of the last request from its beginning.
    private static func turns(_ lanes: [Candidate], after last: HeldPlace?) -> [(Candidate, after: Int64)] {
        guard let last else { return lanes.map { ($0, 0) } }
        let rest = lanes.filter { $0.id == last.lane }.map { ($0, after: last.sequence) }
        let others = lanes.filter { $0.id > last.lane } + lanes.filter { $0.id <= last.lane }
        return rest + others.map { ($0, 0) }
    }

    /// Releases all requests of a scope, in several transactions.
    ///
    /// - Parameter place: The place of the last released request.
    /// - Returns: The place of the last released request of this transaction; `nil` if there are no more.
    mutating func releaseRequests(of scope: CredentialScope, after place: HeldPlace) throws -> HeldPlace? {
        var (last, count) = (place, 0)
        for lane in try lanes(of: scope.origin) where lane.id >= place.lane && count < Self.releasedAtOnce {
            let after = lane.id == place.lane ? place.sequence : 0
            let limit = Self.releasedAtOnce - count
            for row in try rejected(scope, inLane: lane.id, after: after, limit: limit) {
                last = try releaseRejected(row)
                count += 1
            }
        }
        return count == 0 ? nil : last
    }

    /// Releases the first request of each of the next lanes, whatever its credential is.
    mutating func releaseNext(afterLane last: Int64) throws -> ReleasedRequests {
        let lanes = try rows(
            StoreStatements.lanesWithRejected,
            ["after": last, "limit": Self.releasedAtOnce]
        ).map(Candidate.init(row:))
        guard let end = lanes.last else { return .none }
        for lane in lanes where !lane.isPaused {
            let arguments: StatementArguments = ["lane": lane.id, "after": 0, "parallel": lane.isParallel]
            if let found = try row(StoreStatements.firstRejected, arguments) {
                _ = try releaseRejected(found)
            }
        }
        return .some(last: HeldPlace(lane: end.id, sequence: 0))
    }

    private func lanes(of origin: Origin) throws -> [Candidate] {
        try rows(
            StoreStatements.lanesOfOrigin,
            ["scheme": origin.scheme, "host": origin.host, "port": origin.port]
        ).map(Candidate.init(row:))
    }

    private func rejected(
        _ scope: CredentialScope,
        inLane lane: Int64,
        after: Int64,
        limit: Int
    ) throws -> [StoredRow] {
        try rows(
            StoreStatements.rejectedWithCredential,
            ["lane": lane, "after": after, "credential": scope.credential, "limit": limit]
        )
    }

    private mutating func releaseRejected(_ row: StoredRow) throws -> HeldPlace {
        let request = try StoredRequest(row: row)
        try release(request, [.auth])
        return HeldPlace(lane: request.lane, sequence: request.sequence)
    }
}
