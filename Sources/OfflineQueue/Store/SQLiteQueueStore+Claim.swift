internal import Foundation
internal import GRDB

extension SQLiteQueueStore {
    package func claim(_ claims: [LaneClaim], now: Timestamp) async throws -> [ClaimedBatch] {
        let limit = claims.reduce(0) { $0 + $1.limit }
        return try await batcher.write(rows: limit) { [limits, ownerEpoch] database in
            let lease = Lease(token: UUID().uuidString.lowercased(), ownerEpoch: ownerEpoch)
            return try claims.map {
                try Self.claim($0, lease: lease, now: now, limits: limits, database)
            }
        }
    }

    private static func claim(
        _ claim: LaneClaim,
        lease: Lease,
        now: Timestamp,
        limits: Limits,
        _ database: Database
    ) throws -> ClaimedBatch {
        try repairClock(lane: claim.lane, now: now, limits: limits, database)
        if let reasons = claim.expediting {
            try expedite(lane: claim.lane, releasing: reasons, now: now, database)
        }
        let mode = try mode(ofLane: claim.lane, database)
        let rows = try Row.fetchAll(
            try database.cachedStatement(sql: selection(mode)),
            arguments: ["lane": claim.lane, "now": now.milliseconds, "limit": claim.limit]
        )
        return ClaimedBatch(
            lane: claim.lane,
            requests: try rows.map { try take($0, lease: lease, database) },
            due: try due(lane: claim.lane, mode: mode, now: now, limits: limits, database)
        )
    }

    /// The head of a FIFO lane is its first request, whatever state it is in; only a pending one is taken.
    private static func selection(_ mode: LaneKey.Mode) -> String {
        let columns = """
            SELECT request.*, body.bytes AS body FROM request LEFT JOIN body USING (seq)
            """
        return switch mode {
        case .parallel:
            """
            \(columns) WHERE lane_id = :lane AND state = 'pending' AND next_at <= :now
            ORDER BY next_at, request.seq LIMIT :limit
            """
        case .fifo:
            """
            \(columns) WHERE state = 'pending' AND next_at <= :now AND :limit > 0
            AND request.seq = (SELECT seq FROM request WHERE lane_id = :lane ORDER BY seq LIMIT 1)
            """
        }
    }

    private static func take(_ row: Row, lease: Lease, _ database: Database) throws -> ClaimedRequest {
        var state = try RequestState(row: row)
        try state.apply(.claimed(lease))
        try write(state, ofRow: row["seq"], fencedBy: nil, database)
        let request = QueueRequest(
            method: row["method"],
            url: row["url"],
            headers: try HeaderText.decode(row["headers"]),
            body: row["body"] ?? Data()
        )
        return ClaimedRequest(
            sequence: row["seq"],
            id: row["id"],
            lease: lease,
            request: request,
            idempotencyKey: row["idempotency_key"],
            attempts: state.attempts,
            deferrals: state.deferrals
        )
    }

    /// After a backward step of the clock requests look due in a far future.
    private static func repairClock(
        lane: Int64,
        now: Timestamp,
        limits: Limits,
        _ database: Database
    ) throws {
        let repair = try database.cachedStatement(
            sql: "UPDATE request SET next_at = ? WHERE lane_id = ? AND state = 'pending' AND next_at > ?"
        )
        let latest = (now + limits.longestDelay).milliseconds
        try repair.execute(arguments: [latest, lane, latest])
    }

    private static func expedite(
        lane: Int64,
        releasing reasons: Set<HoldReason>,
        now: Timestamp,
        _ database: Database
    ) throws {
        try release(reasons, inLane: lane, now: now, database)
        let expedite = try database.cachedStatement(
            sql: "UPDATE request SET next_at = ?1 WHERE lane_id = ?2 AND state = 'pending' AND next_at > ?1"
        )
        try expedite.execute(arguments: [now.milliseconds, lane])
    }

    /// `lane`: all lanes when `nil`.
    static func release(
        _ reasons: Set<HoldReason>,
        inLane lane: Int64?,
        now: Timestamp,
        _ database: Database
    ) throws {
        let held = try Row.fetchAll(
            database,
            sql: "SELECT * FROM request WHERE state = 'held' AND lane_id = ifnull(?, lane_id)",
            arguments: [lane]
        )
        for row in held {
            var state = try RequestState(row: row)
            guard case .held(let reason) = state.phase, reasons.contains(reason) else { continue }
            try state.apply(.released(reasons, now: now))
            try write(state, ofRow: row["seq"], fencedBy: nil, database)
        }
    }
}
