internal import ClientCore
internal import Foundation
internal import GRDB

extension ArchivedRequest {
    /// The columns of `request` or `history` that ``init(_:)`` and `StoredBody` read. A query must also select `label` and
    /// `mode` (for `request`, from the table `lane`), and `bytes` and `sha256` from the table `body`.
    static let columns = """
        seq, id, state, scheduled_at, hold_reason, priority, created_at, life, expire_at, attempts, deferrals,
        maximum_attempts, method, url, headers, body_bytes, body_file, body_sha256, key_header, key_value, key_quoted,
        at_most_once, replace_key, expectation, timeouts, credential, tag, on_done, webhook_of, constraints,
        key_id, body_key, submitter, last_status, last_error
        """

    /// Returns the list of columns to select from `request` or `history`. The table may have an older schema, because
    /// inspection and salvage do not migrate the database. A column that is missing is read as NULL.
    static func columns(of table: String, in database: Database) -> String {
        let found = Set(((try? database.columns(in: table)) ?? []).map(\.name))
        let missing = found.isEmpty ? [] : laterColumns.subtracting(found)
        let all = columns.split(whereSeparator: { $0 == "," || $0.isWhitespace })
            .map { missing.contains(String($0)) ? "NULL AS \($0)" : String($0) }.joined(separator: ", ")
        guard table == "history" else { return all }
        return all.replacing("scheduled_at, hold_reason,", with: "")
            + ", NULL AS scheduled_at, NULL AS hold_reason"
    }

    /// The columns that versions of the schema after 3 have added.
    private static let laterColumns: Set = [
        "timeouts", "credential", "tag", "on_done", "webhook_of", "constraints", "key_id", "body_key",
        "submitter",
    ]

    /// Creates a request from a row of `request` or `history`. Its dependencies are not in the row, and must be added.
    ///
    /// - Throws: ``DamagedColumn`` or ``QueueError`` if the row does not contain a valid request.
    init(_ row: StoredRow) throws {
        id = try row["id"]
        method = try row["method"]
        url = try row["url"]
        headers = HeaderText.decode(try row["headers"]).map { [$0.name, $0.value] }
        lane = try row["label"]
        fifo = try row["mode"] == LaneKey.Mode.fifo
        priority = try row["priority"]
        created = try row.archivedDate("created_at")
        life = try row["life"]
        expires = try row.archivedDate("expire_at")
        scheduled = try row["scheduled_at"]
        maximumAttempts = try row["maximum_attempts"]
        key = row.isNull("key_value") ? nil : try Key(row)
        atMostOnce = try row["at_most_once"]
        replaceKey = try row["replace_key"]
        after = []
        expect = try row["expectation"]
        // An import refuses settings that cannot be read.
        timeouts = AttemptSettings(stored: try row["timeouts"]).stored
        credential = try row["credential"]
        tag = try row["tag"]
        onDone = try Webhook(stored: row["on_done"])
        webhookOf = try row["webhook_of"]
        constraints = try row["constraints"]
        submitter = try row["submitter"]
        state = .pending
        attempts = try row["attempts"]
        deferrals = try row["deferrals"]
        lastStatus = try row["last_status"]
        lastError = try row["last_error"]
        try readState(row)
    }

    private mutating func readState(_ row: StoredRow) throws {
        switch try row["state"] as String {
        case "pending": state = .pending
        case "blocked": state = .blocked
        case "dead": state = .dead
        case "held": (state, holdReason) = (.held, try row["hold_reason"])
        // A request in flight gets the state that it would have after a restart of the queue.
        case "inflight" where mayBeSentTwice: state = .pending
        case "inflight": (state, holdReason) = (.held, HoldReason.ambiguous.rawValue)
        case let other: throw QueueError(.storeUnusable, "the state \(quoted(other)) is unknown")
        }
    }

    private var mayBeSentTwice: Bool {
        !atMostOnce && (key != nil || HTTPMethod.isIdempotent(method))
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

extension ArchivedRequest.Key {
    fileprivate init(_ row: StoredRow) throws {
        header = try row["key_header"]
        value = try row["key_value"]
        quoted = try row["key_quoted"]
    }
}

// MARK: - Bodies

extension StoredBody {
    /// Creates the value from a row. The length and the SHA-256 of an inline body are checked; a spooled body is not
    /// read.
    ///
    /// - Throws: ``DamagedColumn`` or ``QueueError`` if the body is missing, was changed, or has an invalid file name.
    init(whole row: StoredRow) throws {
        let size: Int64 = try row["body_bytes"]
        if row.isNull("body_file") {
            let bytes = try row["bytes"] ?? Data()
            guard bytes.count == size else {
                throw QueueError(.storeUnusable, "the body has \(bytes.count) bytes instead of \(size)")
            }
            if let difference = try row.bodyDifference() {
                throw QueueError(.storeUnusable, "the body was changed: \(difference)")
            }
            self = bytes.isEmpty ? .none : .inline(bytes)
        } else {
            let (name, digest): (String, String) = try (row["body_file"], row["body_sha256"])
            guard
                let body = SpooledBody(
                    name: name,
                    size: size,
                    digest: digest,
                    sealedKey: try row["body_key"]
                )
            else {
                throw QueueError(
                    .storeUnusable,
                    "the body's file name \(quoted(name)) is invalid"
                )
            }
            self = .spooled(body)
        }
    }
}
