internal import GRDB

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
