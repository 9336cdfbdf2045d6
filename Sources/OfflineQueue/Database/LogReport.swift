/// The content of a write-ahead log, and what SQLite's recovery would drop from it when the database is opened.
package struct LogReport: Hashable, Sendable {
    /// The number of commits that recovery will keep.
    package internal(set) var commits = 0
    /// The number of completely written commits that recovery will drop, because they follow an invalid frame.
    package internal(set) var droppedCommits = 0
    /// Whether the log ends with frames whose commit was never completed, because the process or the machine stopped.
    package internal(set) var hasUnfinishedCommit = false
    /// The number of the first frame of this log that recovery will ignore, counted from 1; `nil` if it will use all
    /// frames.
    package internal(set) var firstBroken: Int?
    /// The page size in bytes; `nil` if the header is not valid.
    package internal(set) var pageSize: Int?
    /// The `application_id` of the database according to the log; `nil` if the log does not contain the first page.
    package internal(set) var application: UInt32?
    /// Whether the header is damaged: neither valid nor empty. Recovery then ignores the whole log.
    package internal(set) var hasBrokenHeader = false
}

extension LogReport {
    /// The number of commits that recovery will drop, including an unfinished one.
    package var incompleteCommits: Int { droppedCommits + (hasUnfinishedCommit ? 1 : 0) }

    /// A description of damage that a power failure cannot cause, because each commit was synced before the next; `nil`
    /// if there is none.
    package var damage: String? {
        if hasBrokenHeader { return "the header of its log is damaged" }
        return droppedCommits > 1 ? brokenFrame : nil
    }

    /// A description of damage to the log of an open database, read between two commits; `nil` if there is none. Here a
    /// single dropped commit is damage, because no commit is in progress.
    package var damageWhileOpen: String? { droppedCommits > 0 ? brokenFrame : damage }

    private var brokenFrame: String? {
        firstBroken.map {
            "frame \($0) of its log is damaged; \(commitCount(droppedCommits)) from there on cannot be read"
        }
    }

    /// A note for the user about what recovery dropped; `nil` if it dropped nothing.
    package var note: String? {
        // A crash while SQLite restarts the log may also damage the header. In that case nothing is lost, because the
        // database already contains all commits.
        if hasBrokenHeader {
            return
                "the header of the database's log was damaged; commits that were only in the log were dropped"
        }
        guard incompleteCommits > 0 else { return nil }
        if let damage { return "the queue's database was damaged: \(damage); these commits were dropped" }
        return
            "the end of the database's log was incomplete; dropped \(commitCount(incompleteCommits))"
    }

    /// Returns why the log cannot belong to this database; `nil` if it can. The log of another queue is not detected.
    ///
    /// - Parameter header: The first 18 bytes of the database file, or fewer if the file is shorter.
    func mismatch(with header: [UInt8]) -> String? {
        guard commits + droppedCommits > 0, let pageSize else { return nil }
        if let application, application != 0, application != QueueSchema.applicationID {
            return "its log belongs to another program's database"
        }
        // The file of a new database may still be empty, with all of its content in the log.
        guard header.count >= 18 else { return nil }
        let found = Int(header[16]) << 8 | Int(header[17])
        let expected = found == 1 ? 65_536 : found
        return pageSize == expected
            ? nil
            : "its log belongs to another database: its pages have \(pageSize) bytes, the database's \(expected)"
    }

    private func commitCount(_ count: Int) -> String { count == 1 ? "1 commit" : "\(count) commits" }
}
