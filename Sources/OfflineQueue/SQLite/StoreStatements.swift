/// The statements that run for requests, each with the index that it uses.
package enum StoreStatements {
    // MARK: Coming in

    static let isKnown = """
        SELECT EXISTS (SELECT 1 FROM request WHERE id = ?1) OR EXISTS (SELECT 1 FROM history WHERE id = ?1)
        """

    package static let findKnown = """
        SELECT state, key_value, last_status, last_error FROM request WHERE id = :id
        UNION ALL SELECT state, key_value, last_status, last_error FROM history WHERE id = :id
        """

    private static let areNamed = "id IN (SELECT value FROM json_each(:ids))"

    package static let storedStates = """
        SELECT id, state, hold_reason, last_status, last_error FROM request WHERE \(areNamed)
        UNION ALL SELECT id, state, NULL, last_status, last_error FROM history WHERE \(areNamed)
        """

    /// Selects a lane with the load of the whole queue. A pause of the queue counts as a pause of every lane.
    private static let laneColumns = """
        SELECT id, scheme, host, port, label, mode, not_before, requests, bytes,
        is_paused OR (SELECT is_paused FROM meta) AS is_paused, (SELECT requests FROM meta) AS all_requests,
        (SELECT bytes FROM meta) AS all_bytes FROM lane
        """

    package static let findLane = "\(laneColumns) WHERE id = ?"
    package static let findLaneByKey =
        "\(laneColumns) WHERE (scheme, host, port, label, mode) = (?, ?, ?, ?, ?)"
    static let busyLanes = "\(laneColumns) WHERE requests > 0"
    package static let insertLane =
        "INSERT INTO lane (scheme, host, port, label, mode) VALUES (?, ?, ?, ?, ?)"

    static let pages = """
        SELECT page_count * page_size AS size, freelist_count * page_size AS free
        FROM pragma_page_count, pragma_page_size, pragma_freelist_count
        """

    package static let load = "SELECT requests, bytes FROM meta"
    static let laneLoad = "SELECT requests, bytes FROM lane WHERE id = ?"

    static let oldest = """
        SELECT * FROM request WHERE state <> 'inflight' AND seq <> :kept ORDER BY seq LIMIT 1
        """

    /// Index: `request_order`.
    static let oldestOfLane = """
        SELECT * FROM request WHERE lane_id = :lane AND state <> 'inflight' AND seq <> :kept ORDER BY seq LIMIT 1
        """

    /// Index: `request_replaced`.
    static let findReplaceable = """
        SELECT * FROM request WHERE lane_id = ? AND replace_key = ? AND state <> 'inflight'
        """

    /// `expire_at` follows the clock, together with all other requests of this boot: see
    /// `StoreTransaction.followClock`.
    package static let insertRequest = """
        INSERT INTO request (id, lane_id, state, next_at, scheduled_at, priority, created_at, life, boot,
        boot_expire_at, expire_at, maximum_attempts, method, url, headers, size, body_bytes, body_file, body_sha256,
        key_header, key_value, key_quoted, at_most_once, replace_key, expectation, timeouts)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?10, ?10 + (SELECT clock_offset FROM meta), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
        ?, ?, ?, ?, ?)
        """

    /// Running it twice changes no value, but leaves a page to write.
    static let touch = "UPDATE meta SET is_paused = 1 - is_paused"

    package static let insertBody = "INSERT INTO body (seq, bytes) VALUES (?, ?)"

    /// Index: `request_sent`.
    static let findSentWithKey = """
        SELECT seq, id FROM request WHERE lane_id = ? AND replace_key = ? AND state = 'inflight'
        """

    // MARK: Being claimed

    private static let priorities = "(VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9))"

    /// Index: `request_due`, with one search per priority.
    static let dueInParallelLane = """
        SELECT min(first) AS next_at FROM (
            SELECT (
                SELECT next_at FROM request WHERE lane_id = :lane AND state = 'pending' AND priority = column1
                ORDER BY next_at, seq LIMIT 1
            ) AS first
            FROM \(priorities)
        )
        """

    /// Selects the priorities that have a request to claim. Index: `request_due`, with one search per priority.
    static let claimablePriorities = """
        SELECT column1 AS priority FROM \(priorities) WHERE EXISTS (
            SELECT 1 FROM request
            WHERE lane_id = :lane AND state = 'pending' AND priority = column1 AND next_at <= :now
        )
        """

    /// Index: `request_order`. The head of a FIFO lane is its first request, whatever its state.
    static let headOfLane = """
        SELECT next_at FROM request WHERE state = 'pending'
        AND seq = (SELECT seq FROM request WHERE lane_id = :lane ORDER BY seq LIMIT 1)
        """

    /// Index: `request_due`.
    package static let claimableInParallelLane = """
        SELECT request.*, bytes FROM request LEFT JOIN body USING (seq)
        WHERE lane_id = :lane AND state = 'pending' AND priority = :priority AND next_at <= :now
        ORDER BY next_at, request.seq LIMIT :limit
        """

    /// Index: `request_order`.
    package static let claimableHeadOfLane = """
        SELECT request.*, bytes FROM request LEFT JOIN body USING (seq)
        WHERE state = 'pending' AND next_at <= :now AND :limit > 0
        AND request.seq = (SELECT seq FROM request WHERE lane_id = :lane ORDER BY seq LIMIT 1)
        """

    package static let claim = """
        UPDATE request SET state = 'inflight', attempts = attempts + 1, lease_token = :token, owner_epoch = :epoch
        WHERE seq = :seq
        """

    /// As ``StoredRequest/earliest(from:)``, but it may be in the past.
    static let earliest = "max(ifnull(scheduled_at, 0), min(ifnull(busy_until, 0), :busiest))"

    /// Index: `request_due`.
    static let bringForward = """
        UPDATE request SET next_at = max(:latest, \(earliest)) WHERE lane_id = :lane
        AND state = 'pending' AND priority IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9) AND next_at > :latest
        AND next_at > \(earliest)
        """

    // MARK: Coming out

    static let findRequest = "SELECT * FROM request WHERE seq = ?"
    static let findRequestByID = "SELECT * FROM request WHERE id = ?"

    package static let updateState = """
        UPDATE request SET state = :state, next_at = ifnull(:due, next_at), lease_token = :token,
        owner_epoch = :epoch, wish = :wish, hold_reason = :reason, attempts = :attempts, deferrals = :deferrals,
        last_status = ifnull(:status, last_status), last_error = ifnull(:detail, last_error),
        conflict_at = CASE :status WHEN \(FailureTable.conflictStatus) THEN ifnull(conflict_at, :now)
        ELSE iif(:status IS NULL, conflict_at, NULL) END
        WHERE seq = :seq AND lease_token IS :fence
        """

    package static let overrun = "UPDATE request SET busy_until = ?, overruns = overruns + 1 WHERE seq = ?"

    package static let insertHistory = """
        INSERT INTO history (state, finished_at, is_whole, kept_bytes, attempts, deferrals, last_status, last_error,
        host, label, mode, \(QueueSchema.fixedContent))
        SELECT :state, :now, :whole, :kept, :attempts, :deferrals, ifnull(:status, last_status),
        iif(:state = 'delivered', NULL, ifnull(:detail, last_error)), host, label, mode, \(QueueSchema.fixedContent)
        FROM (SELECT id AS lane, host, label, mode FROM lane) JOIN request ON lane_id = lane
        WHERE seq = :seq AND lease_token IS :fence
        """

    package static let deleteRequest = "DELETE FROM request WHERE seq = ?"
    package static let deleteBody = "DELETE FROM body WHERE seq = ?"

    package static let insertAttempt = """
        INSERT INTO attempt (seq, number, started_at, microseconds, status, curl_code, error)
        SELECT ?1, ifnull((SELECT max(number) FROM attempt WHERE seq = ?1), 0) + 1, ?2, ?3, ?4, ?5, ?6
        """

    package static let deleteOldAttempts = """
        DELETE FROM attempt WHERE seq = ?1 AND number <= (SELECT max(number) FROM attempt WHERE seq = ?1) - ?2
        """

    package static let insertResponse = """
        INSERT OR REPLACE INTO response (seq, status, headers, body, is_truncated) VALUES (?, ?, ?, ?, ?)
        """

    /// Index: `depends_on`.
    package static let dependents = "SELECT seq, is_any FROM depends WHERE on_seq = ?"

    static let dependencies = """
        SELECT id FROM depends JOIN request ON request.seq = on_seq WHERE depends.seq = ? AND is_any = 0 ORDER BY on_seq
        """

    /// Index: the one of `history.seq`, or the primary key of `request`.
    static let fate = """
        SELECT id, state FROM history WHERE seq = :seq UNION ALL SELECT id, 'superseded' FROM request WHERE seq = :seq
        """

    static let recordFailedDependency =
        "UPDATE request SET last_error = :loss WHERE seq = :seq AND last_error IS NULL"

    /// The assignment that removes what `recordFailedDependency` wrote. The error of an attempt stays.
    static let withoutFailedDependency = """
        last_error = iif(hold_reason IS 'dependency' AND attempts + deferrals = 0, NULL, last_error)
        """

    /// Finds out whether a request waits for another one: directly, through other requests, or because of its position
    /// in a FIFO lane.
    static let isNeeded = """
        WITH RECURSIVE needed (seq) AS (
            VALUES (:seq)
            UNION SELECT on_seq FROM depends JOIN needed USING (seq)
            UNION SELECT ahead.seq FROM needed JOIN request AS place USING (seq)
            JOIN lane ON lane.id = place.lane_id AND mode = 'fifo'
            CROSS JOIN depends AS waiting CROSS JOIN request AS ahead ON ahead.seq = waiting.seq
            WHERE ahead.lane_id = place.lane_id AND ahead.seq < place.seq
        ) SELECT 1 FROM needed WHERE seq = :other
        """

    /// Index: `request_inflight`.
    static let orphans = "SELECT * FROM request WHERE state = 'inflight' AND owner_epoch < ?"

    // MARK: Growing old

    /// Whether the `expire_at` of a request can be trusted: see `StoreTransaction.isExpired`.
    private static let isTrusted = "(boot = :boot OR :trusted OR life <= :sinceBoot)"

    /// Index: `request_expiry`.
    static let expired = """
        SELECT * FROM request WHERE expire_at <= :now AND state <> 'inflight' AND \(isTrusted)
        ORDER BY expire_at LIMIT :limit
        """

    /// Index: `request_expiry`.
    static let nextToExpire = """
        SELECT expire_at FROM request WHERE state <> 'inflight' AND \(isTrusted) ORDER BY expire_at LIMIT 1
        """

    /// The statements whose cost must not grow with the queue.
    package static let flat: [String: String] = [
        "isKnown": isKnown, "findKnown": findKnown, "findLane": findLane, "findLaneByKey": findLaneByKey,
        "oldestOfLane": oldestOfLane, "findReplaceable": findReplaceable, "findSentWithKey": findSentWithKey,
        "dueInParallelLane": dueInParallelLane, "headOfLane": headOfLane,
        "claimablePriorities": claimablePriorities, "claimableInParallelLane": claimableInParallelLane,
        "claimableHeadOfLane": claimableHeadOfLane,
        "claim": claim, "bringForward": bringForward, "findRequest": findRequest,
        "findRequestByID": findRequestByID, "updateState": updateState, "insertHistory": insertHistory,
        "overrun": overrun, "deleteRequest": deleteRequest, "deleteBody": deleteBody,
        "insertAttempt": insertAttempt,
        "forgetAttempts": deleteOldAttempts, "dependents": dependents, "orphans": orphans,
        "expired": expired, "nextToExpire": nextToExpire,
    ]
}
