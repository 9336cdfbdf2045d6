/// The SQL statements for requests. The comments name the index that a statement uses.
package enum StoreStatements {
    // MARK: Enqueuing

    static let isKnown = """
        SELECT EXISTS (SELECT 1 FROM request WHERE id = ?1) OR EXISTS (SELECT 1 FROM history WHERE id = ?1)
        """

    private static let knownColumns = """
        id, state, last_status, last_error, submitter, key_id, content, method, url, is_repeatable, body_bytes,
        credential
        """

    package static let findKnown = """
        SELECT \(knownColumns) FROM request WHERE id = :id UNION ALL SELECT \(knownColumns) FROM history WHERE id = :id
        """

    private static let areNamed = "id IN (SELECT value FROM json_each(:ids))"

    package static let storedStates = """
        SELECT id, state, hold_reason, last_status, last_error, submitter FROM request WHERE \(areNamed)
        UNION ALL SELECT id, state, NULL, last_status, last_error, submitter FROM history WHERE \(areNamed)
        """

    /// Selects a lane with the counters of the whole queue. While the queue is paused, every lane counts as paused.
    private static let laneColumns = """
        SELECT id, scheme, host, port, label, mode, lane_constraints, lane_submitter, not_before, boot_not_before,
        requests, bytes, is_paused OR (SELECT is_paused FROM meta) AS is_paused,
        (SELECT requests FROM meta) AS all_requests, (SELECT bytes FROM meta) AS all_bytes FROM lane
        """

    package static let findLane = "\(laneColumns) WHERE id = ?"
    /// The condition that a lane has a key, or that it differs from the key only in its submitter. The arguments are
    /// those of `LaneKey.arguments`. Index: `lane_key`.
    private static let isSameForAll =
        "(scheme, host, port, label, mode, lane_constraints) = (?1, ?2, ?3, ?4, ?5, ?6)"
    package static let findLaneByKey =
        "\(laneColumns) WHERE \(isSameForAll) AND ifnull(lane_submitter, -1) = ifnull(?7, -1)"
    static let busyLanes = "\(laneColumns) WHERE requests > 0"
    package static let insertLane = """
        INSERT INTO lane (scheme, host, port, label, mode, lane_constraints, lane_submitter, is_paused, pauses_new)
        SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, is_paused, is_paused
        FROM (SELECT EXISTS (SELECT 1 FROM lane WHERE \(isSameForAll) AND pauses_new = 1) AS is_paused)
        """

    static let pages = """
        SELECT page_count * page_size AS size, freelist_count * page_size AS free
        FROM pragma_page_count, pragma_page_size, pragma_freelist_count
        """

    package static let load = "SELECT requests, bytes FROM meta"
    static let laneLoad = "SELECT requests, bytes FROM lane WHERE id = ?"
    static let userLoad = "SELECT requests, bytes FROM submitter WHERE user = ?"

    /// The condition that dropping a request frees room.
    private static let isDroppable = "state <> 'inflight' AND seq <> :kept AND is_droppable = 1"

    /// Selects the oldest request that may be dropped, except the one with the number `kept`: of the whole queue, of a
    /// user, or of a lane. Indexes: `request_submitter` for those of a user, `request_order` for those of a lane.
    static let oldest = oldest(where: "")
    package static let oldestOfUser = oldest(where: "submitter = :user AND ")
    static let oldestOfLane = oldest(where: "lane_id = :lane AND ")

    private static func oldest(where condition: String) -> String {
        "SELECT * FROM request WHERE \(condition)\(isDroppable) ORDER BY seq LIMIT 1"
    }

    /// Selects the waiting request with a replace key. Index: `request_replaced`.
    static let findReplaceable = """
        SELECT * FROM request WHERE lane_id = ? AND replace_key = ? AND state <> 'inflight'
        """

    /// Argument 10 is the expiry time by the boot clock. `expire_at` is the same time by the wall clock, and
    /// `StoredTimes` adjusts it when the wall clock is set.
    package static let insertRequest = """
        INSERT INTO request (id, lane_id, state, next_at, scheduled_at, priority, created_at, life, boot,
        boot_expire_at, expire_at, method, url, content, key_id, size, body_bytes, body_file, body_key, is_repeatable,
        is_droppable, replace_key, credential, tag, submitter, options)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?10, ?10 + (SELECT clock_offset FROM meta), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
        ?, ?, ?, ?, ?)
        """

    /// Toggles a value. Run twice, it changes nothing, but forces SQLite to write a page.
    static let touch = "UPDATE meta SET is_paused = 1 - is_paused"

    package static let insertBody = "INSERT INTO body (seq, bytes) VALUES (?, ?)"

    /// Selects the request in flight with a replace key. Index: `request_sent`.
    static let findSentWithKey = """
        SELECT seq, id, created_at FROM request WHERE lane_id = ? AND replace_key = ? AND state = 'inflight'
        """

    // MARK: Claiming

    private static let priorities = "(VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9))"

    /// Selects the earliest due time in a parallel lane. Index: `request_due`, with one search for each priority.
    static let dueInParallelLane = """
        SELECT min(first) AS next_at FROM (
            SELECT (
                SELECT next_at FROM request WHERE lane_id = :lane AND state = 'pending' AND priority = column1
                ORDER BY next_at, seq LIMIT 1
            ) AS first
            FROM \(priorities)
        )
        """

    /// Selects each priority with the due time of its first request; `NULL` if none is due. Index: `request_due`, with
    /// one search for each priority.
    package static let claimablePriorities = """
        SELECT column1 AS priority, (
            SELECT next_at FROM request
            WHERE lane_id = :lane AND state = 'pending' AND priority = column1 AND next_at <= :now
            ORDER BY next_at, seq LIMIT 1
        ) AS first
        FROM \(priorities)
        """

    /// Selects the due time of the first request of a FIFO lane, if that request is pending. Index: `request_order`.
    static let headOfLane = """
        SELECT next_at FROM request WHERE state = 'pending'
        AND seq = (SELECT seq FROM request WHERE lane_id = :lane ORDER BY seq LIMIT 1)
        """

    /// Selects requests of one priority in a parallel lane that are due at a time, with their bodies. Index:
    /// `request_due`.
    package static let claimableInParallelLane = """
        SELECT request.*, bytes FROM request LEFT JOIN body USING (seq)
        WHERE lane_id = :lane AND state = 'pending' AND priority = :priority AND next_at <= :until
        ORDER BY next_at, request.seq LIMIT :limit
        """

    /// Selects the first request of a FIFO lane with its body, if it is due. Index: `request_order`.
    package static let claimableHeadOfLane = """
        SELECT request.*, bytes FROM request LEFT JOIN body USING (seq)
        WHERE state = 'pending' AND next_at <= :now AND :limit > 0
        AND request.seq = (SELECT seq FROM request WHERE lane_id = :lane ORDER BY seq LIMIT 1)
        """

    /// While a request is in flight, `next_at` is the start of its attempt.
    package static let claim = """
        UPDATE request SET state = 'inflight', attempts = attempts + 1, lease_token = :token, owner_epoch = :epoch,
        next_at = :now
        WHERE seq = :seq
        """

    static let postpone = "UPDATE request SET next_at = :due WHERE seq = :seq"

    /// The earliest time at which a request may be sent, as in ``StoredRequest/earliest(from:)``, except that it may be
    /// in the past.
    static let earliest = "max(ifnull(scheduled_at, 0), min(ifnull(busy_until, 0), :busiest))"

    /// Makes pending requests of a lane due at `latest`, unless they are due earlier or ``earliest`` is later. Index:
    /// `request_due`.
    static let bringForward = """
        UPDATE request SET next_at = max(:latest, \(earliest)) WHERE lane_id = :lane
        AND state = 'pending' AND priority IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9) AND next_at > :latest
        AND next_at > \(earliest)
        """

    /// After the wall clock was set, moves due times in the future by the same amount, but not before the current time
    /// or ``earliest``. A request that waits for its scheduled time keeps it.
    ///
    /// `limit` is the earlier one of the current time and the time that it was without the step.
    static let followClock = """
        UPDATE request SET next_at = max(:now, next_at + :step, \(earliest))
        WHERE state = 'pending' AND next_at > :limit AND next_at > ifnull(scheduled_at, 0) AND next_at <= :farthest
        """

    /// Selects the lanes that have held requests. Index: `request_held`, which has only held requests.
    static let lanesWithHeld = "SELECT DISTINCT lane_id FROM request WHERE state = 'held'"

    /// Selects the held requests of a lane after a row number. Those with an encryption key that is not among the keys
    /// are left out. Index: `request_held`.
    package static let held = """
        SELECT * FROM request WHERE state = 'held' AND lane_id = :lane AND hold_reason = :reason AND seq > :after
        AND (hold_reason <> 'key' OR key_id IS NULL OR key_id IN (SELECT value FROM json_each(:keys)))
        ORDER BY seq LIMIT 256
        """

    /// Selects a request that is held because it could not be decrypted, with its body.
    static let heldForKey = """
        SELECT request.*, bytes FROM request LEFT JOIN body USING (seq)
        WHERE request.seq = ? AND state = 'held' AND hold_reason = 'key'
        """

    // MARK: Concluding

    static let findRequest = "SELECT * FROM request WHERE seq = ?"
    static let findRequestByID = "SELECT * FROM request WHERE id = ?"

    package static let updateState = """
        UPDATE request SET state = :state, next_at = ifnull(:due, next_at), lease_token = :token,
        owner_epoch = :epoch, wish = :wish, hold_reason = :reason, attempts = :attempts, deferrals = :deferrals,
        last_status = ifnull(:status, last_status), last_error = ifnull(:detail, \(lastError)),
        conflict_at = CASE :status WHEN \(FailureTable.conflictStatus) THEN ifnull(conflict_at, :now)
        ELSE iif(:status IS NULL, conflict_at, NULL) END
        WHERE seq = :seq AND lease_token IS :fence
        """

    /// Selects requests that are held because of their credential, and whose last attempt ended at a time or before.
    /// Index: `request_credential`.
    static let heldForCredential = """
        SELECT * FROM request WHERE credential = :name AND state = 'held' AND hold_reason = 'auth' AND seq > :after
        AND NOT EXISTS
        (SELECT 1 FROM attempt WHERE attempt.seq = request.seq AND started_at + microseconds / 1000 > :latest)
        ORDER BY seq LIMIT :limit
        """

    /// The requests of a lane that an attempt has held because of their credential, after a row number. Imported requests
    /// are left out, because they may lack the secrets that the export has removed. Index: `request_rejected` with a
    /// credential, otherwise `request_held`.
    private static let rejected = """
        state = 'held' AND lane_id = :lane AND hold_reason = 'auth' AND seq > :after
        AND EXISTS (SELECT 1 FROM attempt WHERE attempt.seq = request.seq)
        """

    /// The requests of ``rejected`` whose attempt could begin at once: those that wait for no other request.
    private static let startable = """
        NOT EXISTS (SELECT 1 FROM depends WHERE depends.seq = request.seq)
        AND (:parallel OR seq = (SELECT seq FROM request AS head WHERE head.lane_id = :lane ORDER BY seq LIMIT 1))
        """

    /// Selects the next request of a lane that can be tried with its credential. Index: `request_rejected`.
    package static let nextRejected = """
        SELECT * FROM request WHERE \(rejected) AND credential IS :credential AND \(startable) ORDER BY seq LIMIT 1
        """

    /// Selects the first request of a lane that can be tried with any credential. Index: `request_held`.
    package static let firstRejected =
        "SELECT * FROM request WHERE \(rejected) AND \(startable) ORDER BY seq LIMIT 1"

    /// Selects the next requests of a lane that are held because of a credential. Index: `request_rejected`.
    package static let rejectedWithCredential = """
        SELECT * FROM request WHERE \(rejected) AND credential IS :credential ORDER BY seq LIMIT :limit
        """

    /// Selects the lanes of an origin that have requests which are held because of a credential. Indexes: the one on the
    /// key of a lane, and `request_held`.
    static let lanesOfOrigin = """
        SELECT id, mode, is_paused OR (SELECT is_paused FROM meta) AS is_paused FROM lane
        WHERE (scheme, host, port) = (:scheme, :host, :port) AND requests > 0
        AND EXISTS (SELECT 1 FROM request WHERE state = 'held' AND lane_id = lane.id AND hold_reason = 'auth')
        ORDER BY id
        """

    /// Selects the next lanes with requests that are held because of a credential. Index: `request_rejected`.
    static let lanesWithRejected = """
        SELECT id, mode, is_paused OR (SELECT is_paused FROM meta) AS is_paused FROM lane WHERE id IN (
            SELECT DISTINCT lane_id FROM request
            WHERE state = 'held' AND hold_reason = 'auth' AND lane_id > :after ORDER BY lane_id LIMIT :limit
        ) ORDER BY id
        """

    package static let overrun = "UPDATE request SET busy_until = ?, overruns = overruns + 1 WHERE seq = ?"

    /// The columns of `history` for the time at which a request finished, and their values.
    static let (finish, finishValues) = (
        "finished_at, finished_boot, boot_finished_at", ":now, :boot, :sinceBoot"
    )

    package static let insertHistory = """
        INSERT INTO history (state, \(finish), is_whole, kept_bytes, attempts, deferrals, last_status, last_error,
        host, label, mode, \(QueueSchema.fixedContent))
        SELECT :state, \(finishValues), :whole, :kept, :attempts, :deferrals, ifnull(:status, last_status),
        iif(:state = 'delivered', NULL, ifnull(:detail, \(lastError))), host, label, mode,
        \(QueueSchema.fixedContent)
        FROM (SELECT id AS lane, host, label, mode FROM lane) JOIN request ON lane_id = lane
        WHERE seq = :seq AND lease_token IS :fence
        """

    /// Reserves the next position of `history`, as an insertion would.
    static let reservePosition = "UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'history'"

    /// Follows ``reservePosition``: the request has ended again, so its position is that of its new end.
    package static let cancelDead = """
        UPDATE history SET state = 'cancelled', (\(finish)) = (\(finishValues)), is_whole = 0,
        kept_bytes = kept_bytes - :freed, position = (SELECT seq FROM sqlite_sequence WHERE name = 'history')
        WHERE seq = :seq
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
        INSERT OR REPLACE INTO response (seq, status, headers, body, is_truncated, key_id) VALUES (?, ?, ?, ?, ?, ?)
        """

    /// Selects the requests that depend on a request. Index: `depends_on`.
    package static let dependents = "SELECT seq, is_any FROM depends WHERE on_seq = ?"

    static let dependencies = """
        SELECT on_seq, id FROM depends JOIN request ON request.seq = on_seq
        WHERE depends.seq = ? AND is_any = 0 ORDER BY on_seq
        """

    /// Selects the id and the state of a request that was not delivered. Indexes: the one on `history.seq`, and the
    /// primary key of `request`.
    static let undeliveredDependency = """
        SELECT id, state FROM history WHERE seq = :seq UNION ALL SELECT id, 'superseded' FROM request WHERE seq = :seq
        """

    static let recordFailedDependency =
        "UPDATE request SET last_error = :loss WHERE seq = :seq AND last_error IS NULL"

    /// The assignment that removes the message of `recordFailedDependency`. The error of an attempt stays.
    static let withoutFailedDependency = """
        last_error = iif(hold_reason IS 'dependency' AND attempts + deferrals = 0, NULL, \(lastError))
        """

    /// The last error of a request whose hold has ended. A message about a missing key is useful only during the hold,
    /// so the error of the last attempt replaces it.
    static let lastError = """
        iif(hold_reason IS 'key',
            (SELECT error FROM attempt WHERE attempt.seq = request.seq ORDER BY number DESC LIMIT 1),
            last_error)
        """

    /// The requests for which the request `seq` waits: itself, its dependencies, and those before it in a FIFO lane
    /// that have dependencies, and so on. Only requests that are blocked or held have dependencies. Indexes: the primary
    /// key of `depends`, and `request_waits`.
    private static let needed = """
        WITH RECURSIVE needed (seq) AS (
            VALUES (:seq)
            UNION SELECT on_seq FROM depends JOIN needed USING (seq)
            UNION SELECT (
                SELECT ahead.seq FROM request AS ahead
                WHERE ahead.lane_id = place.lane_id AND ahead.seq < place.seq
                AND ahead.state IN ('blocked', 'held')
                AND EXISTS (SELECT 1 FROM depends WHERE depends.seq = ahead.seq)
                ORDER BY ahead.seq DESC LIMIT 1
            )
            FROM needed JOIN request AS place USING (seq) JOIN lane ON lane.id = place.lane_id AND mode = 'fifo'
        )
        """

    /// Selects a row if the request `seq` waits for the request `other`: directly, through other requests, or because
    /// of its position in a FIFO lane.
    package static let isNeeded = "\(needed) SELECT 1 FROM needed WHERE seq = :other"

    /// Selects the requests on which an earlier request depends, in pages. Each cycle of dependencies contains one:
    /// requests wait for later ones only after a replacement or an import. Index: `depends_on`.
    package static let laterDependencies = """
        SELECT DISTINCT on_seq FROM depends WHERE on_seq > :after AND seq < on_seq ORDER BY on_seq LIMIT :limit
        """

    /// Selects the ids of an earlier request that depends on the request `seq`, and of `seq`, which also waits for that
    /// request. NULL instead of an id that cannot be found.
    package static let cycle = """
        \(needed) SELECT (SELECT id FROM request WHERE seq = earlier.seq) AS id,
        (SELECT id FROM request WHERE seq = :seq) AS other
        FROM needed JOIN depends AS earlier ON earlier.seq = needed.seq AND earlier.on_seq = :seq
        WHERE earlier.seq < :seq LIMIT 1
        """

    /// Selects the requests in flight that earlier runs of the queue have left. Index: `request_inflight`.
    static let orphans = "SELECT * FROM request WHERE state = 'inflight' AND owner_epoch < ?"
}
