/// A store that was moved away, and what was salvaged from it.
public struct SetAsideStore: Hashable, Sendable {
    /// What is wrong with the store.
    public let reason: String
    /// The directory that contains its files now. They are never removed.
    public let directory: String
    /// The salvaged requests.
    public let salvage: Salvage
}

/// What could be read of a store that was set aside. Bodies of up to 64 KiB have no separate hash, so changed bytes
/// within them cannot be detected.
public struct Salvage: Hashable, Sendable {
    /// The path of a regular export to be imported.
    public let path: String
    /// The number of unfinished requests that were saved.
    public internal(set) var waiting = 0
    /// The number of saved requests that had been given up.
    public internal(set) var dead = 0
    /// The store's own count of unfinished requests; `nil` when it cannot be read either.
    public internal(set) var counted: Int?
    /// Requests that could be read in part only, at most 1000 of them.
    public internal(set) var lost: [ExportPage.LeftOut] = []
    /// The total number of such requests.
    public internal(set) var lostCount = 0
    /// Ranges of sequence numbers whose rows could not be read. Some of the numbers may have been unused.
    public internal(set) var gaps: [ClosedRange<Int64>] = []
    /// Failures that affect more than single requests, with their reasons.
    public internal(set) var notes: [String] = []

    /// Whether everything was saved, as far as this can be determined.
    public var isWhole: Bool {
        lostCount == 0 && gaps.isEmpty && notes.isEmpty && waiting >= counted ?? 0
    }
}
