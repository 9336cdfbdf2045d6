internal import GRDB

extension SQLiteQueueStore {
    package func list(limit: Int) async throws -> [QueuedRequest] {
        try await batcher.read { database in
            let current = try Row.fetchAll(
                database,
                sql: """
                    SELECT request.*, NULL AS finished_at, label, mode
                    FROM request JOIN lane ON lane.id = lane_id ORDER BY seq LIMIT ?
                    """,
                arguments: [limit]
            )
            let finished = try Row.fetchAll(
                database,
                sql: """
                    SELECT history.*, NULL AS hold_reason, NULL AS next_at, label, mode
                    FROM history JOIN lane ON lane.id = lane_id ORDER BY position DESC LIMIT ?
                    """,
                arguments: [limit - current.count]
            )
            return (current + finished).map(QueuedRequest.init(row:))
        }
    }

    package func counts() async throws -> QueueCounts {
        try await batcher.read { database in
            let rows = try Row.fetchAll(
                database,
                sql: """
                    SELECT state, count(*) AS number FROM request GROUP BY state
                    UNION ALL SELECT state, count(*) FROM history GROUP BY state
                    """
            )
            return rows.reduce(into: QueueCounts()) { counts, row in
                counts[QueuedRequest.State(rawValue: row["state"])!] = row["number"]
            }
        }
    }
}

extension QueuedRequest {
    fileprivate init(row: Row) {
        func moment(_ column: String) -> Timestamp? {
            (row[column] as Int64?).map(Timestamp.init(milliseconds:))
        }
        let state = State(rawValue: row["state"])!
        let label: String = row["label"]
        self.init(
            id: row["id"],
            state: state,
            holdReason: (row["hold_reason"] as String?).flatMap(HoldReason.init(rawValue:)),
            method: row["method"],
            url: row["url"],
            lane: label.isEmpty ? nil : label,
            isFIFO: row["mode"] as String == LaneKey.Mode.fifo.rawValue,
            attempts: row["attempts"],
            deferrals: row["deferrals"],
            created: moment("created_at")!.date,
            due: state == .pending ? moment("next_at")?.date : nil,
            finished: moment("finished_at")?.date,
            status: row["last_status"],
            lastError: row["last_error"]
        )
    }
}

extension QueueCounts {
    fileprivate subscript(state: QueuedRequest.State) -> Int {
        get {
            switch state {
            case .pending: pending
            case .inflight: inflight
            case .held: held
            case .delivered: delivered
            case .dead: dead
            }
        }
        set {
            switch state {
            case .pending: pending = newValue
            case .inflight: inflight = newValue
            case .held: held = newValue
            case .delivered: delivered = newValue
            case .dead: dead = newValue
            }
        }
    }
}
