internal import Foundation
internal import GRDB

/// T2: claims requests for sending.
extension StoreTransaction {
    /// The number of rows after which a claim stops reading. Past that, many of them turned out to be expired, and the
    /// rest is left to another transaction.
    private static let mostLookedAt = 256

    mutating func claim(_ claims: [LaneClaim]) throws -> [ClaimedBatch] {
        let token = UUIDv4.make()
        return try claims.map { try claim($0, token: token) }
    }

    private mutating func claim(_ claim: LaneClaim, token: String) throws -> ClaimedBatch {
        guard let lane = try lane(claim.lane), !lane.isPaused else {
            return ClaimedBatch(lane: claim.lane, requests: [], due: nil, isElsewhere: false)
        }
        // Most conclusions claim the lane's next request, so they need not read the lane again.
        if !lane.isEmpty { drainedLanes.remove(lane.id) }
        if let reasons = claim.releasing { try makeDue(lane: lane.id, releasing: reasons) }
        let lease = Lease(token: token, ownerEpoch: environment.ownerEpoch)
        let requests = try take(claim.limit, of: lane, lease)
        if requests.isEmpty { try repairClock(inLane: lane.id) }
        return ClaimedBatch(
            lane: lane.id,
            requests: requests,
            due: try due(inLane: lane),
            isElsewhere: false
        )
    }

    private mutating func take(_ limit: Int, of lane: StoredLane, _ lease: Lease) throws -> [ClaimedRequest] {
        guard lane.key.mode == .parallel else {
            let arguments: StatementArguments = ["lane": lane.id, "now": now.milliseconds, "limit": limit]
            return try take(try rows(StoreStatements.claimableHeadOfLane, arguments), lease)
        }
        let priorities: [Int] = try rows(
            StoreStatements.claimablePriorities,
            ["lane": lane.id, "now": now.milliseconds]
        ).map { try $0["priority"] }
        var (taken, lookedAt) = ([ClaimedRequest](), 0)
        for priority in priorities.sorted() where taken.count < limit && lookedAt < Self.mostLookedAt {
            var (wanted, found) = (0, 0)
            repeat {
                wanted = limit - taken.count
                let rows = try rows(
                    StoreStatements.claimableInParallelLane,
                    ["lane": lane.id, "priority": priority, "now": now.milliseconds, "limit": wanted]
                )
                found = rows.count
                lookedAt += found
                taken += try take(rows, lease)
                // Expired rows were given up instead of claimed, so there may be more.
            } while taken.count < limit && found == wanted && lookedAt < Self.mostLookedAt
        }
        return taken
    }

    /// Claims requests. Expired ones are given up instead.
    private mutating func take(_ rows: [StoredRow], _ lease: Lease) throws -> [ClaimedRequest] {
        try rows.compactMap { row in
            var request = try StoredRequest(row: row)
            guard try !isExpired(row) else {
                try move(request, by: .givenUp(.expired, reason: RequestLifecycle.expiredReason))
                return nil
            }
            try request.state.apply(.claimed(lease))
            try execute(
                StoreStatements.claim,
                ["seq": request.sequence, "token": lease.token, "epoch": lease.ownerEpoch]
            )
            return try ClaimedRequest(row: row, lease: lease, request.state, now: now)
        }
    }

    /// Corrects due times that lie far in the future because the clock was set back.
    private func repairClock(inLane lane: Int64) throws {
        let latest = (now + settings.longestDelay).milliseconds
        try bringForward(inLane: lane, latest)
    }

    private mutating func makeDue(lane: Int64, releasing reasons: Set<HoldReason>) throws {
        try release(reasons, inLane: lane)
        try bringForward(inLane: lane, now.milliseconds)
    }

    /// Makes requests due no later than `latest`, but neither before their scheduled time nor while the server may
    /// still be busy with the previous attempt.
    private func bringForward(inLane lane: Int64, _ latest: Int64) throws {
        try execute(StoreStatements.bringForward, ["lane": lane, "latest": latest, "busiest": busiest])
    }

    /// The latest time until which a server can still be busy with an attempt, even if the clock was set.
    var busiest: Int64 { (now + AttemptTimeouts.longest).milliseconds }

    /// Releases requests that are held for one of the reasons.
    ///
    /// - Parameter lane: The lane; `nil` for all lanes.
    mutating func release(_ reasons: Set<HoldReason>, inLane lane: Int64?) throws {
        guard !reasons.isEmpty else { return }
        let names = reasons.map(\.rawValue).sorted()
        let held = try rows(
            """
            SELECT * FROM request WHERE state = 'held' AND lane_id = ifnull(?, lane_id)
            AND hold_reason IN (SELECT value FROM json_each(?))
            """,
            [lane, "[\"\(names.joined(separator: "\",\""))\"]"]
        )
        for row in held {
            let request = try StoredRequest(row: row)
            let isBlocked = try isBlocked(request.sequence)
            let due = try request.earliest(from: now)
            try move(request, by: .released(reasons, now: due, isBlocked: isBlocked))
            changedLanes.insert(request.lane)
        }
    }

    func liveTokens() throws -> Set<String> {
        Set(
            try rows("SELECT DISTINCT lease_token FROM request WHERE state = 'inflight'").map {
                try $0["lease_token"]
            }
        )
    }
}

extension ClaimedRequest {
    fileprivate init(row: StoredRow, lease: Lease, _ state: RequestLifecycle, now: Timestamp) throws {
        try self.init(
            sequence: row["seq"],
            id: row["id"],
            lease: lease,
            method: row["method"],
            url: row["url"],
            headers: HeaderText.decode(row["headers"]),
            body: StoredBody(row: row),
            key: KeyHeader(row: row),
            isAtMostOnce: row["at_most_once"],
            expectation: Expectation(row: row),
            lastStatus: row["last_status"],
            conflictAge: (row["conflict_at"] as Int64?).map { now - Timestamp(milliseconds: $0) },
            attempts: state.attempts,
            deferrals: state.deferrals,
            timeouts: AttemptTimeouts(stored: row["timeouts"]),
            overruns: row["overruns"]
        )
    }
}

extension StoredBody {
    init(row: StoredRow) throws {
        guard let name = try row["body_file"] as String? else {
            self = (try row["bytes"] as Data?).map(StoredBody.inline) ?? .none
            return
        }
        let body = SpooledBody(name: name, size: try row["body_bytes"], digest: try row["body_sha256"])
        self = body.map(StoredBody.spooled) ?? .unreadable
    }
}

extension KeyHeader {
    init?(row: StoredRow) throws {
        guard let name = try row["key_header"] as String?, let value = try row["key_value"] as String? else {
            return nil
        }
        self.init(name: name, value: value, isQuoted: try row["key_quoted"])
    }
}

extension Expectation {
    /// Uses the default when the stored text cannot be parsed, for example after a manual edit.
    init(row: StoredRow) throws {
        self = (try row["expectation"] as String?).flatMap { try? Expectation(parsing: $0) } ?? .success
    }
}
