/// The ids of webhooks.
enum WebhookID {
    /// Returns the id of the webhook that reports an end, which is also its idempotency key. The position in the history
    /// is part of it, because a dead request that is retried ends again, with another outcome. So are the times: another
    /// store may contain a request with the same id.
    ///
    /// The id must be stored, because a later cancellation of a dead request changes `finished_at` and the position.
    ///
    /// - Parameter row: A row of `history`, as the end has stored it.
    static func make(_ row: StoredRow) throws -> String {
        let (id, position): (String, Int64) = try (row["id"], row["position"])
        let (created, finished): (Int64, Int64) = try (row["created_at"], row["finished_at"])
        let end = "netwatch webhook \(position) \(created) \(finished) \(id)"
        return try UUIDv8.make(hashing: end)
    }
}
