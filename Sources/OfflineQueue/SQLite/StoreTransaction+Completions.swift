internal import GRDB

/// The finished requests with a tag that no handler has handled yet. Triggers add them and remove them together with
/// their rows in `history`.
extension StoreTransaction {
    /// Returns the first completion of a tag after a position; `nil` if there is none, or if it cannot be decrypted. In
    /// that case it waits until the queue is opened with its key: a handler must not be called without the response.
    func completion(of tag: String, after position: Int64) throws -> StoredCompletion? {
        let next = try row(StoreStatements.nextCompletion, ["tag": tag, "after": position])
        guard let next else { return nil }
        do {
            let request = try details(of: next, isOver: true, mustBeReadable: true)
            return StoredCompletion(position: try next["completion"], request: request)
        } catch is SealFault {
            return nil
        }
    }

    func removeCompletion(at position: Int64) throws {
        try execute(StoreStatements.removeCompletion, [position])
    }

    func waitingCompletions() throws -> [QueueStatistics.WaitingCompletions] {
        try rows(StoreStatements.completionCounts, [QueueStatistics.maximumPausedLanes]).map {
            try QueueStatistics.WaitingCompletions(tag: $0["tag"], count: $0["number"])
        }
    }
}
