public import Foundation

/// What the scan of a queue has found. The queue scans its store at intervals, see
/// ``OfflineQueue/OfflineQueue/Configuration/scanInterval``.
public struct QueueScan: Hashable, Sendable {
    /// The maximum number of problems in ``findings``: 20.
    public static let maximumFindings = 20

    /// When the last complete scan or verification ended, by the wall clock. `nil` if none has ended.
    public internal(set) var completed: Date?
    /// When the scan in progress began, by the wall clock. `nil` if none is in progress. A restart of the queue does
    /// not end a scan.
    public internal(set) var began: Date?
    /// The first problems that the last complete scan and the scan in progress have found. All of them are damage.
    public internal(set) var findings: [QueueVerification.Finding] = []
    /// The number of these problems, including those that are not in ``findings``.
    ///
    /// A problem remains in this number until a complete scan or ``OfflineQueue/OfflineQueue/verify()`` does not find
    /// it any more.
    public internal(set) var findingCount = 0

    /// Whether a scan has found damage.
    public var isDamaged: Bool { findingCount > 0 }

    package init() {}
}
