/// The result of an import.
public struct ImportResult: Hashable, Sendable {
    /// The number of requests that were added to the queue or, if they had been given up, to its history.
    public internal(set) var imported = 0
    /// The number of requests in the export that the queue already knew. Nothing was changed for them.
    public internal(set) var known = 0
    /// The first requests that were not imported because their ids belong to other requests, at most
    /// ``maximumConflicts``.
    public internal(set) var conflicts: [Conflict] = []
    /// The number of all requests that were not imported because their ids belong to other requests.
    public internal(set) var conflictCount = 0
    /// The number of requests that were left out, because a newer request with the same replace key waits in the queue.
    public internal(set) var superseded = 0

    /// A request that was not imported, because its id belongs to another request.
    public struct Conflict: Hashable, Sendable {
        /// The id.
        public let id: String
        /// How the request with this id differs, in words for users.
        public let reason: String
    }

    /// The maximum number of requests in ``conflicts``: 1000.
    public static let maximumConflicts = 1000

    mutating func addConflict(_ id: String, _ reason: String) {
        conflictCount += 1
        if conflicts.count < Self.maximumConflicts { conflicts.append(Conflict(id: id, reason: reason)) }
    }
}
