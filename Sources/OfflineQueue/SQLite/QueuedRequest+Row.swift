internal import ClientCore
internal import Foundation
internal import GRDB

// Converts rows to the public type `QueuedRequest`.

extension QueuedRequest {
    /// Creates a request from a row of `request`, joined with its lane, or of `history`.
    ///
    /// - Parameter isOver: Whether the row is one of `history`.
    /// - Throws: ``DamagedColumn`` if a column has an invalid value, or if the state does not fit the table.
    init(row: StoredRow, isOver: Bool, now: Timestamp) throws {
        func moment(_ column: String) throws -> Date? {
            try (row[column] as Int64?).map { Timestamp(milliseconds: $0).date }
        }
        let state: State = try row["state"]
        guard state.isFinal == isOver else {
            throw DamagedColumn(name: "state", found: .string(state.rawValue))
        }
        let label: String = try row["label"]
        try self.init(
            id: row["id"],
            sequence: row["seq"],
            state: state,
            holdReason: isOver
                ? nil : (row["hold_reason"] as String?).flatMap(HoldReason.init(rawValue:)),
            method: row["method"],
            url: SecretQueryItems.redacting(row["url"]),
            lane: label.isEmpty ? nil : label,
            isFIFO: row["mode"] == LaneKey.Mode.fifo.rawValue,
            priority: row["priority"],
            tag: row["tag"],
            credential: row["credential"],
            submitter: row["submitter"],
            bodyBytes: row["body_bytes"],
            attempts: row["attempts"],
            deferrals: row["deferrals"],
            created: moment("created_at")!,
            expires: isOver ? nil : moment("expire_at"),
            finished: isOver ? moment("finished_at") : nil,
            status: row["last_status"],
            lastError: row["last_error"],
            laneClosure: isOver ? nil : LaneClosure(lane: row, now: now),
            waitReason: isOver ? nil : Self.storedWaitReason(state, isPaused: row["is_paused"]),
            requestDue: state == .pending ? moment("next_at") : nil,
            laneID: isOver ? nil : row["lane_id"],
            precedingID: isOver ? nil : row["preceding_id"]
        )
    }

    private static func storedWaitReason(_ state: State, isPaused: Bool) -> QueuedReason? {
        switch state {
        case .blocked: .blocked
        case .pending where isPaused: .paused
        default: nil
        }
    }
}

extension LaneClosure {
    /// Creates the closure of a lane by `Retry-After`. Returns `nil` if the lane is not closed now.
    ///
    /// - Parameter row: A row with the columns `not_before` and `closed_by` of a lane.
    init?(lane row: StoredRow, now: Timestamp) throws {
        guard let end = (try row["not_before"] as Int64?).map(Timestamp.init(milliseconds:)), end > now else {
            return nil
        }
        self.init(until: end.date, status: try row["closed_by"], cause: .retryAfter)
    }
}
