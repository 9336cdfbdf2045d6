/// The result of ``OfflineQueue/OfflineQueue/verify()``.
public struct QueueVerification: Hashable, Sendable {
    /// A single problem.
    public struct Finding: Hashable, Sendable {
        /// The kind of a problem, for programs.
        public enum Kind: String, Hashable, Sendable, CaseIterable {
            /// The database's structure (`PRAGMA integrity_check`) or its log is damaged. The queue should be set
            /// aside.
            case database
            /// A row refers to a missing row (`PRAGMA foreign_key_check`).
            case reference
            /// A count that the limits use differs from the actual number.
            case counter
            /// A row does not hold a valid request.
            case request
            /// The file of a body is missing.
            case bodyMissing = "body_missing"
            /// The file of a body differs from what was accepted.
            case bodyChanged = "body_changed"
            /// The file of a body cannot be read at the moment.
            case bodyUnreadable = "body_unreadable"
            /// The last commit in the database's log was incomplete when the queue was opened, and was dropped. This is
            /// normal after a crash or a power failure. It contained nothing that was acknowledged with durability
            /// `full`.
            case logTail = "log_tail"
            /// A spool file belongs to no request. It only takes space, and the next start removes it.
            case orphan
        }

        /// The kind of the problem, for programs.
        public let kind: Kind
        /// The id of the request, or the name of the file, table or lane.
        public let subject: String
        /// A description of the problem, for users.
        public let message: String
    }

    /// The maximum number of findings that are listed: 1000.
    public static let maximumFindings = 1000

    /// The problems found, at most ``maximumFindings``.
    public internal(set) var findings: [Finding] = []
    /// The total number of problems.
    public internal(set) var findingCount = 0
    /// The number of requests that were checked.
    public internal(set) var requests = 0
    /// The number of spool files that were read.
    public internal(set) var files = 0

    /// Whether no finding means the loss of a request. Unneeded spool files and an incomplete end of the log are
    /// harmless.
    public var isSound: Bool { findings.allSatisfy { [.orphan, .logTail].contains($0.kind) } }

    mutating func found(_ kind: Finding.Kind, _ subject: String, _ message: String) {
        findingCount += 1
        guard findings.count < Self.maximumFindings else { return }
        findings.append(Finding(kind: kind, subject: subject, message: message))
    }
}

extension QueueVerification.Finding: CustomStringConvertible {
    /// The finding as a line of text for users.
    public var description: String { "\(kind.rawValue): \(subject): \(message)" }
}
