internal import Foundation

/// What a queue remembers of its scans across restarts.
package struct ScanRecord: Codable, Hashable, Sendable {
    /// The next piece of the scan in progress; `nil` if none is in progress.
    private(set) var next: ScanPosition?
    /// When the scan in progress began.
    private(set) var began: Date?
    /// When the last complete scan ended.
    private(set) var completed: Date?
    /// What the scan in progress has found until now.
    private var current = ScanFindings()
    /// What the last complete scan has found.
    private var last = ScanFindings()

    package init() {}

    /// Returns whether the scan in progress continues, or a new one begins.
    ///
    /// The wall clock may be wrong, above all after a boot. Therefore a scan is also due when none was in progress for
    /// an interval by the continuous clock.
    ///
    /// - Parameters:
    ///   - interval: The time between two scans; zero for no scans.
    ///   - idle: The time since the end of the last scan, or since the start of the queue, by the continuous clock.
    ///   - now: The wall clock.
    func isDue(every interval: Duration, after idle: Duration, at now: Date) -> Bool {
        guard interval > .zero else { return false }
        guard next == nil, let completed else { return true }
        let age = now.timeIntervalSince(completed)
        // The clock was ahead when a scan ended in the future.
        return idle >= interval || .seconds(age) >= interval || age < 0
    }

    /// Begins a scan, unless one is in progress, and returns its next piece.
    mutating func begin(at now: Date) -> ScanPosition {
        if let next { return next }
        (began, next) = (now, .database)
        return .database
    }

    /// Adds the result of the next piece.
    ///
    /// - Returns: The first damage, if the scan had found none before.
    mutating func add(_ piece: ScanPiece, at now: Date) -> QueueVerification.Finding? {
        let wasSound = current.count == 0
        let damage = piece.report.findings.filter(\.kind.isFoundByScans)
        current.add(damage)
        next = piece.next
        if next == nil {
            (last, current) = (current, ScanFindings())
            (completed, began) = (now, nil)
        }
        return wasSound ? damage.first : nil
    }

    /// Replaces what scans have found with the result of a verification, which reads all that a scan reads. A scan in
    /// progress continues.
    mutating func replaceFindings(with report: QueueVerification, at now: Date) {
        (last, current) = (ScanFindings(), ScanFindings())
        last.add(report.findings.filter(\.kind.isFoundByScans))
        completed = now
    }

    /// The findings of the last complete scan, and those that the scan in progress has added.
    var scan: QueueScan {
        var scan = QueueScan()
        (scan.completed, scan.began) = (completed, began)
        let added = current.listed.filter { !last.listed.contains($0) }
        let findings = last.listed + added
        scan.findings = findings.prefix(QueueScan.maximumFindings).map(\.finding)
        scan.findingCount = max(findings.count, last.count, current.count)
        return scan
    }
}

extension ScanRecord {
    /// The maximum size of a stored record in bytes. Messages contain at most a few names from outside.
    static let longest = 1 << 20

    /// The record as JSON.
    func stored() throws -> [UInt8] { Array(try JSONEncoder().encode(self)) }

    /// Parses a stored record; `nil` if it is damaged, or if another version has written it.
    init?(stored bytes: [UInt8]) {
        guard let record = try? JSONDecoder().decode(Self.self, from: Data(bytes)) else { return nil }
        let times = [record.began, record.completed].compactMap { $0?.timeIntervalSince1970 }
        // Such times cannot be shown.
        guard times.allSatisfy({ (0...Double(Timestamp.farthest / 1000)).contains($0) }) else { return nil }
        self = record
    }
}

/// The damage that one scan has found.
private struct ScanFindings: Codable, Hashable {
    struct Item: Codable, Hashable {
        var kind: String
        var subject: String
        var message: String

        init(_ finding: QueueVerification.Finding) {
            (kind, subject, message) = (finding.kind.rawValue, finding.subject, finding.message)
        }

        var finding: QueueVerification.Finding {
            QueueVerification.Finding(
                kind: QueueVerification.Finding.Kind(rawValue: kind) ?? .database,
                subject: subject,
                message: message
            )
        }
    }

    private(set) var count = 0
    private(set) var listed: [Item] = []

    mutating func add(_ findings: [QueueVerification.Finding]) {
        count += findings.count
        let free = max(0, QueueScan.maximumFindings - listed.count)
        listed += findings.prefix(free).map(Item.init)
    }
}

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
