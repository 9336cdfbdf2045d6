/// A damaged store that was moved away, and the requests that were salvaged from it.
public struct SetAsideStore: Hashable, Sendable {
    /// The damage that was found.
    public let reason: String
    /// The directory that the store's files were moved to. The queue never removes them.
    public let directory: String
    /// The salvaged requests.
    public let salvage: Salvage
}

/// The requests that could be read from a store that was set aside.
///
/// Bodies of up to 64 KiB have no separate hash, so changed bytes within them cannot be detected.
public struct Salvage: Hashable, Sendable {
    /// The path of the export that contains the salvaged requests, for ``OfflineQueue/importRequests(from:)``.
    public let path: String
    /// The number of unfinished requests in the export.
    public internal(set) var waiting = 0
    /// The number of requests in the export that had been given up.
    public internal(set) var dead = 0
    /// The number of unfinished requests according to the store's own counter; `nil` if the counter cannot be read.
    public internal(set) var counted: Int?
    /// The first 1000 requests of which only a part could be read. They are not in the export.
    public internal(set) var lost: [ExportPage.LeftOut] = []
    /// The number of all requests of which only a part could be read.
    public internal(set) var lostCount = 0
    /// The ranges of sequence numbers whose rows could not be read. Some of these numbers may never have been used.
    public internal(set) var gaps: [ClosedRange<Int64>] = []
    /// The failures that affect more than one request, for example an unreadable table.
    public internal(set) var notes: [String] = []

    /// Whether the export contains all requests, as far as this can be determined.
    public var isWhole: Bool {
        lostCount == 0 && gaps.isEmpty && notes.isEmpty && waiting >= counted ?? 0
    }
}
