/// The statements that are run for every request, each beside the index that serves it.
package enum StoreStatements {
    package static let insertLane =
        "INSERT INTO lane (scheme, host, port, label, mode) VALUES (?, ?, ?, ?, ?)"

    package static let insertRequest = """
        INSERT INTO request (id, lane_id, state, next_at, scheduled_at, priority, created_at, expire_at, boot,
        boot_expire_at, maximum_attempts, method, url, headers, size, body_bytes, body_file, body_sha256, key_header,
        key_value, key_quoted, at_most_once, replace_key, expectation)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """

    package static let insertBody = "INSERT INTO body (seq, bytes) VALUES (?, ?)"

    /// `request_due`, sought once for each priority.
    static let dueInParallelLane = """
        SELECT min(next_at) AS next_at, scheduled_at FROM (
            SELECT (
                SELECT seq FROM request WHERE lane_id = :lane AND state = 'pending' AND priority = column1
                ORDER BY next_at, seq LIMIT 1
            ) AS first
            FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9))
        ) JOIN request ON seq = first
        """

    /// `request_order`. The head of a lane in order is its first request, whatever state it is in.
    static let headOfLane = """
        SELECT next_at, scheduled_at FROM request WHERE state = 'pending'
        AND seq = (SELECT seq FROM request WHERE lane_id = :lane ORDER BY seq LIMIT 1)
        """

    /// `request_due`.
    package static let claimableInParallelLane = """
        SELECT request.*, bytes FROM request LEFT JOIN body USING (seq)
        WHERE lane_id = :lane AND state = 'pending' AND priority = :priority AND next_at <= :now
        ORDER BY next_at, request.seq LIMIT :limit
        """

    /// `request_order`.
    package static let claimableHeadOfLane = """
        SELECT request.*, bytes FROM request LEFT JOIN body USING (seq)
        WHERE state = 'pending' AND next_at <= :now AND :limit > 0
        AND request.seq = (SELECT seq FROM request WHERE lane_id = :lane ORDER BY seq LIMIT 1)
        """

    package static let claim = """
        UPDATE request SET state = 'inflight', attempts = attempts + 1, lease_token = :token, owner_epoch = :epoch
        WHERE seq = :seq
        """

    package static let updateState = """
        UPDATE request SET state = :state, next_at = ifnull(:due, next_at), lease_token = :token,
        owner_epoch = :epoch, wish = :wish, hold_reason = :reason, attempts = :attempts, deferrals = :deferrals,
        last_status = ifnull(:status, last_status), last_error = ifnull(:detail, last_error)
        WHERE seq = :seq AND lease_token IS :fence
        """

    package static let insertHistory = """
        INSERT INTO history (state, finished_at, is_whole, kept_bytes, attempts, deferrals, last_status, last_error,
        host, label, mode, \(QueueSchema.fixedContent))
        SELECT :state, :now, :whole, :kept, :attempts, :deferrals, ifnull(:status, last_status),
        ifnull(:detail, last_error), host, label, mode, \(QueueSchema.fixedContent)
        FROM (SELECT id AS lane, host, label, mode FROM lane) JOIN request ON lane_id = lane
        WHERE seq = :seq AND lease_token IS :fence
        """

    package static let deleteRequest = "DELETE FROM request WHERE seq = ?"
    package static let deleteBody = "DELETE FROM body WHERE seq = ?"

    package static let insertAttempt = """
        INSERT INTO attempt (seq, number, started_at, microseconds, status, curl_code, error)
        SELECT ?1, ifnull((SELECT max(number) FROM attempt WHERE seq = ?1), 0) + 1, ?2, ?3, ?4, ?5, ?6
        """
}
