/// What ``OfflineQueue/OfflineQueue/verify()`` found.
public struct QueueVerification: Hashable, Sendable {
    /// Something that is not as it should be.
    public struct Finding: Hashable, Sendable {
        /// What is wrong, for programs.
        public enum Kind: String, Hashable, Sendable, CaseIterable {
            /// The database's own structure is damaged (`PRAGMA integrity_check`), or its log is. The queue should be
            /// set aside.
            case database
            /// A row refers to one that is not there (`PRAGMA foreign_key_check`).
            case reference
            /// A number by which the limits are judged is not what is there.
            case counter
            /// A row does not hold a request that could be sent.
            case request
            /// The file of a body is missing.
            case bodyMissing = "body_missing"
            /// The file of a body holds something else than was accepted.
            case bodyChanged = "body_changed"
            /// The file of a body cannot be read for now.
            case bodyUnreadable = "body_unreadable"
            /// The last commit in the database's log was incomplete when the queue was opened, and was dropped: normal
            /// after a crash or a power cut. Nothing that was acknowledged with durability `full` was in it.
            case logTail = "log_tail"
            /// A file of the spool belongs to no request. Costs room only; the next start removes it.
            case orphan
        }

        /// What is wrong, for programs.
        public let kind: Kind
        /// The id of the request, or the name of the file, table or lane.
        public let subject: String
        /// What is wrong, for people.
        public let message: String
    }

    /// At most this many findings are told one by one: 1000.
    public static let mostFindings = 1000

    /// What was found, at most ``mostFindings``.
    public internal(set) var findings: [Finding] = []
    /// How many findings there are in all.
    public internal(set) var findingCount = 0
    /// How many requests were looked at.
    public internal(set) var requests = 0
    /// How many files of the spool were read through.
    public internal(set) var files = 0

    /// Whether nothing was found that costs a request. Files that nobody needs and a log's incomplete end do not count.
    public var isSound: Bool { findings.allSatisfy { [.orphan, .logTail].contains($0.kind) } }

    /// - Parameters:
    ///   - opened: The log as an earlier owner left it.
    ///   - current: The log between two commits of this owner.
    mutating func add(opened: LogReport?, current: LogReport?) {
        if let damage = current?.damageWhileOpen { found(.database, Self.log, damage) }
        guard let opened, let note = opened.note else { return }
        found(opened.damage == nil ? .logTail : .database, Self.log, note)
    }

    private static let log = "queue.sqlite-wal"

    mutating func found(_ kind: Finding.Kind, _ subject: String, _ message: String) {
        findingCount += 1
        guard findings.count < Self.mostFindings else { return }
        findings.append(Finding(kind: kind, subject: subject, message: message))
    }
}

extension QueueVerification.Finding: CustomStringConvertible {
    /// The finding as a line for people.
    public var description: String { "\(kind.rawValue): \(subject): \(message)" }
}

extension OfflineQueue {
    /// Looks through everything: the structure of the database, the numbers that the limits are judged by, each
    /// request, and each file of the spool, which is read from its beginning to its end. Changes nothing, and nobody
    /// who enqueues waits for it. It ends with `CancellationError` when its task is cancelled or the queue stops.
    ///
    /// - Throws: ``QueueError`` of the store.
    public nonisolated func verify() async throws -> QueueVerification {
        try await store.archive.inspect()
    }
}
