internal import ClientCore
internal import Foundation
internal import GRDB

extension ArchivedRequest {
    /// The columns that ``init(row:)`` reads, in addition to `label`, `mode` and `bytes`.
    static let columns = """
        seq, id, state, scheduled_at, hold_reason, priority, created_at, life, expire_at, attempts, deferrals,
        maximum_attempts, method, url, headers, body_bytes, body_file, body_sha256, key_header, key_value, key_quoted,
        at_most_once, replace_key, expectation, timeouts, last_status, last_error
        """

    /// Returns the columns of a table. The table may have the schema of an older version, because inspection and
    /// salvage do not migrate the database.
    static func columns(of table: String, in database: Database) -> String {
        let found = (try? database.columns(in: table)) ?? []
        let all =
            found.isEmpty || found.contains { $0.name == "timeouts" }
            ? columns : columns.replacing(" timeouts,", with: " NULL AS timeouts,")
        guard table == "history" else { return all }
        return all.replacing("scheduled_at, hold_reason,", with: "")
            + ", NULL AS scheduled_at, NULL AS hold_reason"
    }

    /// Reads a row of `request` or `history`. The row does not contain the dependencies.
    ///
    /// - Throws: ``DamagedColumn`` or ``QueueError`` when the row does not hold a request.
    init(_ row: StoredRow) throws {
        id = try row["id"]
        method = try row["method"]
        url = try row["url"]
        headers = HeaderText.decode(try row["headers"]).map { [$0.name, $0.value] }
        lane = try row["label"]
        fifo = try row["mode"] == LaneKey.Mode.fifo
        priority = try row["priority"]
        created = try row["created_at"]
        life = try row["life"]
        expires = try row["expire_at"]
        scheduled = try row["scheduled_at"]
        maximumAttempts = try row["maximum_attempts"]
        key = row.isNull("key_value") ? nil : try Key(row)
        atMostOnce = try row["at_most_once"]
        replaceKey = try row["replace_key"]
        after = []
        expect = try row["expectation"]
        timeouts = try row["timeouts"]
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
        // A request that was being sent is read as a restart would leave it.
        case "inflight" where mayBeSentTwice: state = .pending
        case "inflight": (state, holdReason) = (.held, HoldReason.ambiguous.rawValue)
        case let other: throw QueueError(.storeUnusable, "unknown state \(quoted(other))")
        }
    }

    private var mayBeSentTwice: Bool {
        !atMostOnce && (key != nil || HTTPMethod.isIdempotent(method))
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
    /// Reads the location of the body, and checks the length of an inline one.
    ///
    /// - Throws: ``DamagedColumn`` or ``QueueError`` when the body is missing or has another length.
    init(whole row: StoredRow) throws {
        let size: Int64 = try row["body_bytes"]
        if row.isNull("body_file") {
            let bytes = try row["bytes"] ?? Data()
            guard bytes.count == size else {
                throw QueueError(.storeUnusable, "its body has \(bytes.count) bytes instead of \(size)")
            }
            self = bytes.isEmpty ? .none : .inline(bytes)
        } else {
            let (name, digest): (String, String) = try (row["body_file"], row["body_sha256"])
            guard let body = SpooledBody(name: name, size: size, digest: digest) else {
                throw QueueError(
                    .storeUnusable,
                    "its body refers to the invalid file name \(quoted(name))"
                )
            }
            self = .spooled(body)
        }
    }
}
