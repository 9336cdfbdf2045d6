internal import GRDB

/// Finds the request that replaced another one, which the store does not record.
extension StoreTransaction {
    /// Returns the id of the request that replaced a superseded request; `nil` if there is none.
    func replacement(of row: StoredRow) throws -> String? {
        guard try row["state"] == QueuedRequest.State.superseded else { return nil }
        let origin = try Origin(url: row["url"], allowsUserInfo: true)
        let candidates = try rows(
            Self.newerWithKey,
            [
                "seq": row["seq"] as Int64, "key": row["replace_key"] as String?, "scheme": origin.scheme,
                "host": origin.host, "port": origin.port, "label": row["label"] as String,
                "mode": row["mode"] as String, "constraints": row["constraints"] as String?,
            ]
        )
        // The history does not store the scheme and the port of a lane.
        let replacement = try candidates.first { try Origin(url: $0["url"], allowsUserInfo: true) == origin }
        return try replacement.map { try $0["id"] }
    }

    /// Selects the requests of a lane with a replace key that were enqueued after a request, in their order. Indexes:
    /// `request_replaced` and `request_sent`. The rows of `history` are scanned, and may belong to a lane with another
    /// scheme or port.
    private static let newerWithKey = """
        WITH place AS (
            SELECT id AS lane FROM lane WHERE (scheme, host, port, label, mode, lane_constraints)
            = (:scheme, :host, :port, :label, :mode, ifnull(:constraints, ''))
        )
        SELECT id, url FROM (
            SELECT seq, id, url FROM place JOIN request ON lane_id = lane
            WHERE replace_key = :key AND state <> 'inflight'
            UNION ALL SELECT seq, id, url FROM place JOIN request ON lane_id = lane
            WHERE replace_key = :key AND state = 'inflight'
            UNION ALL SELECT seq, id, url FROM history
            WHERE replace_key = :key AND (host, label, mode) = (:host, :label, :mode)
            AND constraints IS :constraints
        ) WHERE seq > :seq ORDER BY seq
        """
}
