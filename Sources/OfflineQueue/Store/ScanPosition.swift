/// A part of a store that a scan reads in one piece. A scan continues from there after a restart.
package enum ScanPosition: Codable, Hashable, Sendable {
    /// The structure of the whole database. If the time limit of a piece does not suffice for it, its tables follow,
    /// one by one.
    case database
    /// The structure of the first table after this one, by name, and of its indexes.
    case table(after: String)
    /// The rows after a key, of a table whose structure takes longer than the time limit. -1 comes before all keys.
    case rows(of: String, after: Int64)
    /// The first index after this one, by name, of such a table. Each attempt has twice the time limit of the one
    /// before it.
    case index(of: String, after: String, attempt: Int)
    /// The requests after a position, and their bodies.
    case requests(ExportCursor.Part, after: Int64)

    /// The table that is read in pieces; `nil` for the other positions.
    var table: String? {
        switch self {
        case .rows(let table, _), .index(let table, _, _): table
        case .database, .table, .requests: nil
        }
    }
}

/// The result of reading one piece of a store.
package struct ScanPiece: Sendable {
    /// The next piece; `nil` if the scan is complete.
    package var next: ScanPosition?
    /// What was found in this piece.
    package var report = QueueVerification()
}

/// The times of a scan.
package struct ScanTiming: Hashable, Sendable {
    package var pace = DiskPace()
    /// The time limit for the check of a structure, and for the first attempt to read an index: 1 s. SQLite cannot
    /// restart the database's log during a statement.
    package var limit: Duration = .seconds(1)
    /// The time between the start of the queue and its first scan: 60 s. A start is busy with other work.
    package var startDelay: Duration = .seconds(60)
    /// The time between two checks whether a scan is due, and before a piece is repeated that could not be read: 60 s.
    package var wait: Duration = .seconds(60)
    /// The minimum time between two writes of the record: 60 s. After a crash, a scan repeats what it has read since.
    package var recordInterval: Duration = .seconds(60)

    package init() {}
}
