internal import GRDB

/// The store does not record which request replaced another one, so this searches for it.
extension StoreTransaction {
    /// Returns the id of the request that replaced a superseded request; `nil` if the store no longer knows it, or if
    /// the URL is damaged.
    ///
    /// Of the newer requests with the same lane and replace key, this is the oldest one that existed when the request
    /// was replaced, and that was not finished before. An imported request keeps the time at which another machine
    /// accepted it, because the import compares these times. If that machine's clock was ahead, the time may be later
    /// than the replacement, and the request is not found.
    func replacement(of row: StoredRow) throws -> String? {
        guard try row["state"] == QueuedRequest.State.superseded, let key = try row["replace_key"] as String?,
            let origin = try? Origin(url: try row["url"], allowsUserInfo: true)
        else { return nil }
        let candidates = try [finished(after: row, key, origin)] + unfinished(after: row, key, origin)
        let places = try candidates.compactMap(\.self).map {
            try (sequence: $0["seq"] as Int64, id: $0["id"] as String)
        }
        return places.min { $0.sequence < $1.sequence }?.id
    }

    /// Returns the waiting request and the request in flight that may have replaced a request.
    private func unfinished(after row: StoredRow, _ key: String, _ origin: Origin) throws -> [StoredRow] {
        guard let lane = try knownLane(of: LaneKey(finished: row, origin: origin))?.id else { return [] }
        let (sequence, end): (Int64, Int64) = try (row["seq"], row["finished_at"])
        return try [StoreStatements.findReplaceable, StoreStatements.findSentWithKey]
            .compactMap { try self.row($0, [lane, key]) }
            .filter { try ($0["seq"] as Int64) > sequence && ($0["created_at"] as Int64) <= end }
    }

    /// Returns the first finished request that may have replaced a request. The history does not store the scheme and
    /// the port of a lane.
    private func finished(after row: StoredRow, _ key: String, _ origin: Origin) throws -> StoredRow? {
        let constraints = EnqueueOptions(stored: try row["options"]).constraints
        let arguments: StatementArguments = try [
            "seq": row["seq"] as Int64, "end": row["finished_at"] as Int64, "key": key, "host": origin.host,
            "label": row["label"] as String, "mode": row["mode"] as String,
            "submitter": row["submitter"] as UInt32?,
        ]
        let found = try cursor(StoreStatements.finishedReplacements, arguments)
        while let candidate = try found.next() {
            if let other = try? Origin(url: try candidate["url"], allowsUserInfo: true), other == origin,
                EnqueueOptions(stored: try candidate["options"]).constraints == constraints
            {
                return candidate
            }
        }
        return nil
    }
}

extension StoreStatements {
    /// Selects the finished requests that may have replaced the request `seq`, which ended at `end`, in their order.
    /// They may belong to a lane with another scheme, port or constraints. Index: the one on `history.seq`.
    package static let finishedReplacements = """
        SELECT seq, id, url, options FROM history WHERE seq > :seq AND replace_key = :key
        AND (host, label, mode) = (:host, :label, :mode) AND submitter IS :submitter
        AND created_at <= :end AND finished_at >= :end ORDER BY seq
        """
}
