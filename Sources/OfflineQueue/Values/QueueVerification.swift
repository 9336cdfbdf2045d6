/// The result of ``OfflineQueue/OfflineQueue/verify()``.
public struct QueueVerification: Hashable, Sendable {
    /// A problem that the verification found.
    public struct Finding: Hashable, Sendable {
        /// The kind of a problem, for programs.
        public enum Kind: String, Hashable, Sendable, CaseIterable {
            /// The database's structure (`PRAGMA integrity_check`) or its log is damaged. Stop the queue and call
            /// ``OfflineQueue/setAside(directory:evenIfSound:encryptionKeyFile:)``.
            case database
            /// The disk cannot read a part of the database at the moment. Only a scan
            /// (``OfflineQueue/OfflineQueue/scan``) reports this. ``OfflineQueue/OfflineQueue/verify()`` throws the
            /// error instead.
            case databaseUnreadable = "database_unreadable"
            /// A row refers to a missing row (`PRAGMA foreign_key_check`).
            case reference
            /// A stored count of requests or bytes, which is used to enforce ``QueueLimits``, differs from the actual
            /// number.
            case counter
            /// A row does not contain a valid request: it cannot be read or decrypted, or the body in it was changed.
            case request
            /// Requests wait for each other because of ``EnqueueOptions/dependencies``, so that none of them is sent. A
            /// retry (``OfflineQueue/OfflineQueue/retry(_:newKey:)``) of the request ends its wait.
            case dependencyCycle = "dependency_cycle"
            /// The file of a body is missing.
            case bodyMissing = "body_missing"
            /// The file of a body has a different size or SHA-256 than the accepted body.
            case bodyChanged = "body_changed"
            /// The file of a body cannot be read at the moment.
            case bodyUnreadable = "body_unreadable"
            /// The request is encrypted, and its encryption key is missing. Only the existence and the size of its body
            /// were checked.
            case encryptionKey = "encryption_key"
            /// The database's log ended with an incomplete commit when the queue was opened. The commit was dropped.
            ///
            /// This is normal after a crash or a power loss. No request in that commit had been accepted with the
            /// durability `full`.
            case logTail = "log_tail"
            /// A spool file (a large body) belongs to no request. The next start of the queue removes it.
            /// Such files are not reported if the database is damaged.
            case orphan

            /// Whether such a problem is damage.
            var isDamage: Bool { ![.orphan, .logTail, .encryptionKey].contains(self) }

            /// Whether scans search for such damage (``QueueScan``). They read each part of the store for itself.
            var isFoundByScans: Bool { isDamage && ![.reference, .counter, .dependencyCycle].contains(self) }
        }

        /// The kind of the problem, for programs.
        public let kind: Kind
        /// The id of the request, or the name of the file, table or lane.
        public let subject: String
        /// The problem in words, for users.
        public let message: String
    }

    /// The maximum number of problems in ``findings``: 1000.
    public static let maximumFindings = 1000

    /// The first problems that were found, at most ``maximumFindings``.
    public internal(set) var findings: [Finding] = []
    /// The number of all problems, including those that are not in ``findings``.
    public internal(set) var findingCount = 0
    /// The number of requests that were checked.
    public internal(set) var requests = 0
    /// The number of requests that could not be checked, because their encryption key is missing. Each of them is a
    /// finding of the kind ``Finding/Kind/encryptionKey``, and is not part of ``requests``.
    public private(set) var unchecked = 0
    /// The number of spool files that were read.
    public internal(set) var files = 0

    /// Whether a finding is damage. Spool files without a request, an incomplete commit at the end of the log, and
    /// requests whose encryption key is missing (``unchecked``) are not damage.
    public private(set) var isDamaged = false
    /// Whether every request was checked, and no finding is damage.
    public var isSound: Bool { !isDamaged && unchecked == 0 }

    /// Adds a request whose encryption key is missing.
    mutating func foundUnchecked(_ id: String, _ reason: String) {
        unchecked += 1
        found(.encryptionKey, id, reason)
    }

    mutating func found(_ kind: Finding.Kind, _ subject: String, _ message: String) {
        findingCount += 1
        // Decided before the limit applies: a loss may follow many harmless findings.
        if kind.isDamage { isDamaged = true }
        guard findings.count < Self.maximumFindings else { return }
        findings.append(Finding(kind: kind, subject: subject, message: message))
    }
}

extension QueueVerification.Finding: CustomStringConvertible {
    /// The finding as a line of text for users.
    public var description: String { "\(kind.rawValue): \(subject): \(message)" }
}

/// The result of a check of a store's structure that ends after a time limit.
package enum QuickCheck: Hashable, Sendable {
    /// The whole structure was checked.
    case noDamage
    /// The first damage, for users.
    case damaged(String)
    /// The limit was reached before the end, and no damage was found until then.
    case unfinished
}

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
