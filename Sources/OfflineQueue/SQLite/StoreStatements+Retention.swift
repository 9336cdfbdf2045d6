extension StoreStatements {
    // MARK: Completions

    /// Selects the first unhandled completion of a tag after a position, with the finished request. Index:
    /// `completion_tag`.
    static let nextCompletion = """
        SELECT history.*, completion.position AS completion FROM completion CROSS JOIN history USING (seq)
        WHERE completion.tag = :tag AND completion.position > :after ORDER BY completion.position LIMIT 1
        """
    static let removeCompletion = "DELETE FROM completion WHERE position = ?"
    static let completionCounts = """
        SELECT tag, count(*) AS number FROM completion GROUP BY tag ORDER BY tag LIMIT ?
        """

    // MARK: Encryption

    /// Selects the columns of `meta` that are read when the store is opened, and whether an unfinished request needs
    /// the key that the store used last. Index: `request_key`.
    static let openedMeta = """
        SELECT owner_epoch, boot, clock_offset, key_id,
        EXISTS (SELECT 1 FROM request WHERE request.key_id = meta.key_id) AS is_key_needed FROM meta
        """

    /// Selects the ids of the keys that encrypt requests. It takes one search of each index per key, however many
    /// requests there are. Indexes: `request_key`, `history_key`.
    static let keyIDs = """
        WITH RECURSIVE waiting (key) AS (
            SELECT min(key_id) FROM request WHERE key_id IS NOT NULL
            UNION ALL SELECT (SELECT min(key_id) FROM request WHERE key_id > key) FROM waiting WHERE key IS NOT NULL
        ), finished (key) AS (
            SELECT min(key_id) FROM history WHERE key_id IS NOT NULL
            UNION ALL SELECT (SELECT min(key_id) FROM history WHERE key_id > key) FROM finished WHERE key IS NOT NULL
        )
        SELECT key FROM waiting WHERE key IS NOT NULL UNION SELECT key FROM finished WHERE key IS NOT NULL
        """

    /// Counts the encrypted requests by their key. Indexes: `request_key` and `history_key`.
    static let keyUse = """
        SELECT key_id, sum(number) AS number FROM (
            SELECT key_id, count(*) AS number FROM request WHERE key_id IS NOT NULL GROUP BY key_id
            UNION ALL SELECT key_id, count(*) FROM history WHERE key_id IS NOT NULL GROUP BY key_id
        ) GROUP BY key_id ORDER BY key_id
        """

    // MARK: Expiring

    /// The condition under which the `expire_at` of a request can be trusted; see ``StoreTransaction/isExpired(_:)``.
    private static let isTrusted = "(boot = :boot OR :trusted OR life <= :sinceBoot)"

    /// Selects expired requests whose expiry time can be trusted. Index: `request_expiry`.
    static let expired = """
        SELECT * FROM request WHERE expire_at <= :now AND state <> 'inflight' AND \(isTrusted)
        ORDER BY expire_at LIMIT :limit
        """

    /// Selects the earliest expiry time that can be trusted. Index: `request_expiry`.
    static let nextToExpire = """
        SELECT expire_at FROM request WHERE state <> 'inflight' AND \(isTrusted) ORDER BY expire_at LIMIT 1
        """

    /// Forgets the lengths of closures that are over, so that no reboot continues them.
    static let endClosures = "UPDATE lane SET closure = 0 WHERE closure > 0 AND boot_not_before <= ?"

    // MARK: Retention

    /// The ids that a submitter can have. After damage, `submitter` may contain another value.
    private static let isUser = "submitter BETWEEN 0 AND \(UInt32.max)"

    /// Selects the submitters of finished requests in a state, and NULL, which stands for requests without a submitter.
    /// It takes one search of the index per submitter, however many requests there are. Index: `history_submitter`.
    package static let submitters = """
        WITH RECURSIVE found (user) AS (
            SELECT min(submitter) FROM history WHERE state = :state AND \(isUser)
            UNION ALL SELECT (
                SELECT min(submitter) FROM history WHERE state = :state AND submitter > user AND \(isUser)
            ) FROM found WHERE user IS NOT NULL
        )
        SELECT user FROM found
        """

    /// Selects finished requests of a submitter in a state beyond the newest `count`. Index: `history_submitter`.
    package static let finishedSurplus = """
        SELECT position, seq, body_file FROM history WHERE state = :state AND submitter IS :user
        ORDER BY finished_at DESC LIMIT :limit OFFSET :count
        """

    /// The submitter of a finished request; NULL if it has none, or if the column is damaged.
    private static let readableSubmitter = "iif(\(isUser), submitter, NULL)"

    /// Selects the bytes of the finished requests of each submitter.
    static let keptBytes = """
        SELECT \(readableSubmitter) AS user, sum(kept_bytes) AS bytes FROM history WHERE kept_bytes > 0 GROUP BY user
        """

    /// Selects the oldest finished requests of a submitter that take space.
    static let oldestKept = """
        SELECT position, seq, body_file, kept_bytes FROM history WHERE kept_bytes > 0 AND \(readableSubmitter) IS :user
        ORDER BY position LIMIT :limit
        """

    /// The statements whose execution time must not grow with the length of the queue, by name.
    package static let flat: [String: String] = [
        "isKnown": isKnown, "findKnown": findKnown, "findLane": findLane, "findLaneByKey": findLaneByKey,
        "insertLane": insertLane, "userLoad": userLoad,
        "oldestOfLane": oldestOfLane, "oldestOfUser": oldestOfUser,
        "findReplaceable": findReplaceable, "findSentWithKey": findSentWithKey,
        "dueInParallelLane": dueInParallelLane, "headOfLane": headOfLane,
        "postpone": postpone,
        "claimablePriorities": claimablePriorities, "claimableInParallelLane": claimableInParallelLane,
        "claimableHeadOfLane": claimableHeadOfLane,
        "claim": claim, "bringForward": bringForward, "held": held, "findRequest": findRequest,
        "findRequestByID": findRequestByID, "updateState": updateState, "insertHistory": insertHistory,
        "heldForCredential": heldForCredential, "nextRejected": nextRejected, "firstRejected": firstRejected,
        "rejectedWithCredential": rejectedWithCredential, "overrun": overrun, "deleteRequest": deleteRequest,
        "deleteBody": deleteBody,
        "insertAttempt": insertAttempt,
        "forgetAttempts": deleteOldAttempts, "dependents": dependents, "orphans": orphans,
        "expired": expired, "nextToExpire": nextToExpire, "finishedSurplus": finishedSurplus,
        "nextCompletion": nextCompletion, "removeCompletion": removeCompletion,
    ]
}
