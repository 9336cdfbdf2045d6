/// The result of an import.
public struct ImportResult: Hashable, Sendable {
    /// The number of requests that were added to the queue or, if they had been given up, to its history.
    public internal(set) var imported = 0
    /// The number of requests in the export whose ids the queue already knew. Nothing was changed for them.
    public internal(set) var known = 0
    /// The number of requests that were left out, because a newer request with the same replace key waits in the queue.
    public internal(set) var superseded = 0
}
