internal import Foundation
internal import Testing

@testable internal import OfflineQueue

@Suite struct ScanRecordTests {
    private static let start = Date(timeIntervalSince1970: 1_000_000)
    private static let day = Duration.seconds(86_400)

    /// Adds a piece to the scan in progress, or to a new one.
    ///
    /// - Returns: The subject of the damage that the scan reports.
    private func add(
        _ subjects: [String],
        to record: inout ScanRecord,
        next: ScanPosition?,
        _ kind: QueueVerification.Finding.Kind = .bodyChanged
    ) -> String? {
        var piece = ScanPiece(next: next)
        for subject in subjects { piece.report.found(kind, subject, "x") }
        _ = record.begin(at: Self.start)
        return record.add(piece, at: Self.start)?.subject
    }

    @Test func `a scan is due after the interval, and at once if one is in progress`() {
        var record = ScanRecord()
        func isDue(_ interval: Duration = Self.day, idle: Duration = .zero, after seconds: Double) -> Bool {
            record.isDue(every: interval, after: idle, at: Self.start + seconds)
        }
        #expect(isDue(after: 0) && !isDue(.zero, after: 0))
        _ = add([], to: &record, next: .table(after: ""))
        #expect(isDue(after: 0) && !isDue(.zero, idle: Self.day, after: 0))
        _ = add([], to: &record, next: nil)
        #expect(!isDue(after: 86_399) && isDue(after: 86_400))
        // The wall clock was ahead when the scan ended, and was corrected. Without an RTC, it may be behind.
        #expect(isDue(after: -1e9) && isDue(idle: Self.day, after: 0))
    }

    @Test func `damage is reported once in each scan, and stays until a complete scan does not find it`() {
        var record = ScanRecord()
        var reported = [add(["a"], to: &record, next: .database), add(["b"], to: &record, next: nil)]
        #expect(record.scan.completed == Self.start && record.scan.findings.map(\.subject) == ["a", "b"])
        // The next scan finds one of them again, and another one.
        reported.append(add([], to: &record, next: .database))
        reported.append(add(["b", "c"], to: &record, next: .database))
        #expect(record.scan.began == Self.start && record.scan.findingCount == 3)
        #expect(record.scan.findings.map(\.subject) == ["a", "b", "c"])
        reported.append(add([], to: &record, next: nil))
        #expect(record.scan.began == nil && record.scan.findings.map(\.subject) == ["b", "c"])
        // A missing key is not damage.
        reported.append(add(["d"], to: &record, next: nil, .encryptionKey))
        #expect(!record.scan.isDamaged && reported == ["a", nil, nil, "b", nil, nil])
    }

    @Test func `many findings are counted, and the first of them listed`() {
        var record = ScanRecord()
        let subjects = (0..<50).map { "\($0)" }
        _ = add(subjects, to: &record, next: nil)
        #expect(record.scan.findingCount == 50)
        #expect(record.scan.findings.map(\.subject) == Array(subjects.prefix(QueueScan.maximumFindings)))
    }

    @Test func `a record is stored as JSON, and a damaged one is ignored`() throws {
        let positions: [ScanPosition] = [
            .database, .table(after: "a"), .rows(of: "a", after: .max),
            .index(of: "a", after: "b", attempt: 2), .requests(.dead, after: 7),
        ]
        for position in positions {
            var record = ScanRecord()
            _ = add(["a"], to: &record, next: position)
            #expect(ScanRecord(stored: try record.stored()) == record)
        }
        let text = String(decoding: try ScanRecord().stored(), as: UTF8.self)
        let far = "{\"completed\":1e300," + text.dropFirst()
        for damaged in ["", "{}", String(text.dropLast()), far] {
            #expect(damaged != text && ScanRecord(stored: Array(damaged.utf8)) == nil, "\(damaged)")
        }
    }

    @Test func `the disk rests for nine times as long as it reads, within limits`() {
        let pace = DiskPace()
        #expect(pace.rest(after: .seconds(1)) == .seconds(9))
        #expect(pace.rest(after: .milliseconds(1)) == .milliseconds(50))
        #expect(pace.rest(after: .seconds(36_000)) == .seconds(60))
    }
}
