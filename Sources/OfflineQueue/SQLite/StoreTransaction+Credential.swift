internal import ClientCore
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
        let (row, content) = try openedForCaller(request.row)
        let url: String = try row["url"]
        let clean = SecretQueryItems.removing(from: url)
        try execute(
            "UPDATE request SET url = ?, credential = ? WHERE seq = ?",
            [clean, name, request.sequence]
        )
        let changed = row.replacing("url", with: clean).replacing("credential", with: name)
        try write(content, to: changed)
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
