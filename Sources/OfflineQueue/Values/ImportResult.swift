/// The result of an import.
public struct ImportResult: Hashable, Sendable {
    /// The number of requests that were added to the queue, including those that had been given up.
    public internal(set) var imported = 0
    /// The number of requests that the queue already knew; they were not changed.
    public internal(set) var known = 0
    /// The number of requests that were left out, because a newer request with the same replace key is waiting.
    public internal(set) var superseded = 0
}
