/// What is in a write-ahead log.
package struct LogReport: Hashable, Sendable {
    /// How many commits recovery takes.
    package internal(set) var commits = 0
    /// How many commits it drops that were written to their end.
    package internal(set) var droppedCommits = 0
    /// Whether a commit was being written when the process or the machine ended.
    package internal(set) var hasUnfinishedCommit = false
    /// The first frame that belongs to this log and does not count, from 1.
    package internal(set) var firstBroken: Int?
    /// The bytes of a page; `nil` without a valid header.
    package internal(set) var pageSize: Int?
    /// The `application_id` that the log has for the database, if it has its first page.
    package internal(set) var application: UInt32?
    /// Whether the header is neither valid nor empty, so that recovery takes nothing at all.
    package internal(set) var hasBrokenHeader = false
}

extension LogReport {
    /// How many commits a start drops.
    package var incompleteCommits: Int { droppedCommits + (hasUnfinishedCommit ? 1 : 0) }

    /// What a power cut cannot do to commits that were synced; `nil` when nothing is wrong.
    package var damage: String? {
        if hasBrokenHeader { return "the header of its log is damaged" }
        return droppedCommits > 1 ? brokenFrame : nil
    }

    /// What is wrong with a log that is in use, between two commits; `nil` when nothing is.
    package var damageWhileOpen: String? { droppedCommits > 0 ? brokenFrame : damage }

    private var brokenFrame: String? {
        firstBroken.map {
            "frame \($0) of its log is damaged, and \(commitCount(droppedCommits)) from there on cannot be read"
        }
    }

    /// What an owner should know when this log is opened; `nil` when recovery drops nothing.
    package var note: String? {
        // A crash may tear the header while the log begins again, when the database has all of its commits already.
        if hasBrokenHeader {
            return "the header of the database's log was damaged; commits that only the log had were dropped"
        }
        guard incompleteCommits > 0 else { return nil }
        if let damage { return "the queue's database was damaged: \(damage); they were dropped" }
        return
            "\(commitCount(incompleteCommits)) at the end of the database's log was incomplete and was dropped"
    }

    /// Why the log cannot be this database's; `nil` when it can. A log of another queue's passes.
    ///
    /// - Parameter header: The first bytes of the database's file, without the log.
    func foreignness(to header: [UInt8]) -> String? {
        guard commits + droppedCommits > 0, let pageSize else { return nil }
        if let application, application != 0, application != QueueSchema.applicationID {
            return "its log belongs to another program's database"
        }
        // Of a new database everything may be in the log.
        guard header.count >= 18 else { return nil }
        let found = Int(header[16]) << 8 | Int(header[17])
        return pageSize == (found == 1 ? 65_536 : found)
            ? nil : "its log belongs to another database, with pages of \(pageSize) bytes"
    }

    private func commitCount(_ count: Int) -> String { count == 1 ? "1 commit" : "\(count) commits" }
}
