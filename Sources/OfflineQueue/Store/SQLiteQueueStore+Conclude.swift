internal import GRDB

extension SQLiteQueueStore {
    package func conclude(_ conclusions: [Conclusion], now: Timestamp) async throws -> [Bool] {
        try await batcher.write(rows: conclusions.count) { [limits] database in
            try conclusions.map { try Self.conclude($0, now: now, limits: limits, database) }
        }
    }

    private static func conclude(
        _ conclusion: Conclusion,
        now: Timestamp,
        limits: Limits,
        _ database: Database
    ) throws -> Bool {
        let read = try database.cachedStatement(sql: "SELECT * FROM request WHERE seq = ?")
        guard let row = try Row.fetchOne(read, arguments: [conclusion.sequence]) else { return false }
        var state = try RequestState(row: row)
        let due = min(conclusion.due, now + limits.longestDelay)
        do {
            try state.apply(.concluded(token: conclusion.token, conclusion.verdict, due: due))
        } catch {
            return false
        }
        try write(state, row: row, conclusion, now: now, limits: limits, database)
        if let notBefore = conclusion.laneNotBefore {
            let close = try database.cachedStatement(sql: "UPDATE lane SET not_before = ? WHERE id = ?")
            try close.execute(arguments: [notBefore.milliseconds, row["lane_id"] as Int64])
        }
        return true
    }

    private static func write(
        _ state: RequestState,
        row: Row,
        _ conclusion: Conclusion,
        now: Timestamp,
        limits: Limits,
        _ database: Database
    ) throws {
        switch state.phase {
        case .delivered:
            try finish(row, as: "delivered", state, conclusion, now: now, database)
            try pruneHistory(limit: limits.history, database)
        case .dead:
            try finish(row, as: "dead", state, conclusion, now: now, database)
            try pruneHistory(limit: limits.history, database)
        case .pending, .inflight, .held:
            try write(
                state,
                ofRow: row["seq"],
                fencedBy: conclusion.token,
                status: conclusion.status,
                detail: conclusion.detail,
                database
            )
        }
    }

    /// Moves a request to the history, so that the tables that claims read stay small.
    private static func finish(
        _ row: Row,
        as name: String,
        _ state: RequestState,
        _ conclusion: Conclusion,
        now: Timestamp,
        _ database: Database
    ) throws {
        let insert = try database.cachedStatement(
            sql: """
                INSERT INTO history (seq, id, lane_id, state, created_at, finished_at, attempts, deferrals,
                method, url, idempotency_key, last_status, last_error)
                SELECT seq, id, lane_id, :state, created_at, :now, :attempts, :deferrals,
                method, url, idempotency_key, :status, :detail FROM request
                WHERE seq = :seq AND lease_token = :token
                """
        )
        let sequence: Int64 = row["seq"]
        try insert.execute(arguments: [
            "state": name, "now": now.milliseconds, "attempts": state.attempts,
            "deferrals": state.deferrals, "status": conclusion.status, "detail": conclusion.detail,
            "seq": sequence, "token": conclusion.token,
        ])
        let delete = try database.cachedStatement(
            sql: "DELETE FROM request WHERE seq = ? AND lease_token = ?"
        )
        try delete.execute(arguments: [sequence, conclusion.token])
    }

    private static func pruneHistory(limit: Int, _ database: Database) throws {
        let prune = try database.cachedStatement(
            sql: "DELETE FROM history WHERE position <= (SELECT max(position) FROM history) - ?"
        )
        try prune.execute(arguments: [limit])
    }
}

// MARK: - Recovery

extension SQLiteQueueStore {
    package func recover(releasing reasons: Set<HoldReason>, now: Timestamp) async throws -> [LaneRecord] {
        try await batcher.write(rows: 1) { [limits, ownerEpoch] database in
            let orphans = try Row.fetchAll(
                database,
                sql: "SELECT * FROM request WHERE state = 'inflight' AND owner_epoch < ?",
                arguments: [ownerEpoch]
            )
            for row in orphans {
                var state = try RequestState(row: row)
                try state.apply(.ownerChanged(to: ownerEpoch, now: now))
                try Self.write(state, ofRow: row["seq"], fencedBy: row["lease_token"], database)
            }
            return try Self.release(reasons, now: now, limits: limits, database)
        }
    }

    package func reopen(releasing reasons: Set<HoldReason>, now: Timestamp) async throws -> [LaneRecord] {
        try await batcher.write(rows: 1) { [limits] database in
            try database.execute(sql: "UPDATE lane SET not_before = NULL WHERE not_before IS NOT NULL")
            return try Self.release(reasons, now: now, limits: limits, database)
        }
    }

    private static func release(
        _ reasons: Set<HoldReason>,
        now: Timestamp,
        limits: Limits,
        _ database: Database
    ) throws -> [LaneRecord] {
        try release(reasons, inLane: nil, now: now, database)
        let lanes = try Int64.fetchAll(
            database,
            sql: """
                SELECT id FROM lane
                WHERE EXISTS (SELECT 1 FROM request WHERE lane_id = lane.id AND state = 'pending')
                """
        )
        return try lanes.map { try lane($0, now: now, limits: limits, database) }
    }
}
