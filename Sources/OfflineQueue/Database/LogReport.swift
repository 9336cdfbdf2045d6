/// The content of a write-ahead log.
package struct LogReport: Hashable, Sendable {
    /// The number of commits that recovery keeps.
    package internal(set) var commits = 0
    /// The number of completely written commits that recovery drops.
    package internal(set) var droppedCommits = 0
    /// Whether a commit was being written when the process or the machine stopped.
    package internal(set) var hasUnfinishedCommit = false
    /// The number, from 1, of the first frame of this log that recovery ignores.
    package internal(set) var firstBroken: Int?
    /// The page size in bytes; `nil` without a valid header.
    package internal(set) var pageSize: Int?
    /// The `application_id` in the log's copy of the database's first page; `nil` when it has no copy.
    package internal(set) var application: UInt32?
    /// Whether the header is neither valid nor empty. Recovery then takes nothing from the log.
    package internal(set) var hasBrokenHeader = false
}

extension LogReport {
    /// The number of commits that opening the database drops.
    package var incompleteCommits: Int { droppedCommits + (hasUnfinishedCommit ? 1 : 0) }

    /// Damage that a power failure cannot cause to synced commits; `nil` when there is none.
    package var damage: String? {
        if hasBrokenHeader { return "the header of its log is damaged" }
        return droppedCommits > 1 ? brokenFrame : nil
    }

    /// Damage to a log that is in use, read between two commits; `nil` when there is none.
    package var damageWhileOpen: String? { droppedCommits > 0 ? brokenFrame : damage }

    private var brokenFrame: String? {
        firstBroken.map {
            "frame \($0) of its log is damaged; \(commitCount(droppedCommits)) from there on cannot be read"
        }
    }

    /// What the owner should know when this log is opened; `nil` when recovery drops nothing.
    package var note: String? {
        // A crash may damage the header when SQLite restarts the log. The database already contains all commits then.
        if hasBrokenHeader {
            return
                "the header of the database's log was damaged; commits that were only in the log were dropped"
        }
        guard incompleteCommits > 0 else { return nil }
        if let damage { return "the queue's database was damaged: \(damage); they were dropped" }
        return
            "\(commitCount(incompleteCommits)) at the end of the database's log was incomplete and was dropped"
    }

    /// Why the log cannot belong to this database; `nil` when it can. The log of another queue is not detected.
    func mismatch(with header: [UInt8]) -> String? {
        guard commits + droppedCommits > 0, let pageSize else { return nil }
        if let application, application != 0, application != QueueSchema.applicationID {
            return "its log belongs to another program's database"
        }
        // The whole content of a new database may still be in its log.
        guard header.count >= 18 else { return nil }
        let found = Int(header[16]) << 8 | Int(header[17])
        let expected = found == 1 ? 65_536 : found
        return pageSize == expected
            ? nil
            : "its log belongs to another database: it has pages of \(pageSize) bytes, the database of \(expected)"
    }

    private func commitCount(_ count: Int) -> String { count == 1 ? "1 commit" : "\(count) commits" }
}
