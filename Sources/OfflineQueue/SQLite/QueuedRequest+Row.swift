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

extension ArchivedRequest {
    /// The columns of `request` or `history` that ``init(_:)`` and `StoredBody` read. A query must also select `label` and
    /// `mode` (for `request`, from the table `lane`), and `bytes` from the table `body`.
    static func columns(of table: String) -> String {
        let ofRequest = "scheduled_at, hold_reason"
        let ofHistory = "NULL AS scheduled_at, NULL AS hold_reason"
        return """
            seq, id, state, \(table == "history" ? ofHistory : ofRequest), priority, created_at, life, expire_at, attempts,
            deferrals, method, url, content, key_id, body_bytes, body_file, body_key, is_repeatable, replace_key,
            credential, tag, submitter, options, last_status, last_error
            """
    }

    /// Creates a request from a decrypted row of `request` or `history`. Its dependencies are not in the row, and must be
    /// added.
    ///
    /// - Throws: ``DamagedColumn`` or ``QueueError`` if the row does not contain a valid request.
    init(_ row: StoredRow, _ content: RequestContent) throws {
        id = try row["id"]
        method = try row["method"]
        url = try row["url"]
        headers = HeaderText.decode(content.headers).map { [$0.name, $0.value] }
        lane = try row["label"]
        fifo = try row["mode"] == LaneKey.Mode.fifo
        priority = try row["priority"]
        created = try row.archivedDate("created_at")
        life = try row["life"]
        expires = try row.archivedDate("expire_at")
        scheduled = try row["scheduled_at"]
        key = content.key.map { Key(header: $0.name, value: $0.value, quoted: $0.isQuoted) }
        replaceKey = try row["replace_key"]
        dependencies = []
        credential = try row["credential"]
        tag = try row["tag"]
        submitter = try row["submitter"]
        options = try StoredOptions(column: row["options"])
        state = .pending
        attempts = try row["attempts"]
        deferrals = try row["deferrals"]
        lastStatus = try row["last_status"]
        lastError = try row["last_error"]
        try readState(row)
        holdWithoutUnknownOption()
    }

    private mutating func readState(_ row: StoredRow) throws {
        switch try row["state"] as String {
        case "pending": state = .pending
        case "blocked": state = .blocked
        case "dead": state = .dead
        case "held": (state, holdReason) = (.held, try row["hold_reason"])
        // A request in flight gets the state that it would have after a restart of the queue.
        case "inflight" where try row["is_repeatable"]: state = .pending
        case "inflight": (state, holdReason) = (.held, HoldReason.ambiguous.rawValue)
        case let other: throw QueueError(.storeUnusable, "the state \(quoted(other)) is unknown")
        }
    }
}

extension StoredRow {
    /// Returns a date of a row as an export contains it: none is before 1970.
    ///
    /// While the wall clock shows a time shortly after 1970, ``StoredTimes`` moves the dates of older rows to before
    /// 1970. The row keeps such a date, because it becomes right when the clock is set in the same boot. A date beyond
    /// ``Timestamp/farthest`` is damaged and is returned unchanged, so that the checks find it.
    fileprivate func archivedDate(_ column: String) throws -> Int64 {
        let date: Int64 = try self[column]
        return date < -Timestamp.farthest ? date : max(0, date)
    }
}
