internal import Foundation
internal import GRDB
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// The results of `LogScan`, compared with SQLite's own recovery.
@Suite(.timeLimit(.minutes(5))) struct LogScanTests {
    private let scratch = try! ScratchDirectory()
    private var database: String { scratch.file("queue.sqlite") }
    private static let headerBytes = 32

    /// Creates a database whose commits are all in its log, and returns the log. Each commit adds one row and writes at
    /// least one page.
    private func makeLog(commits: Int, pageSize: Int = 4096) throws -> Data {
        let queue = try DatabaseQueue(path: scratch.file("original"))
        try queue.writeWithoutTransaction { database in
            try database.execute(
                sql: """
                    PRAGMA page_size = \(pageSize); PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;
                    PRAGMA wal_checkpoint(TRUNCATE); CREATE TABLE line (number)
                    """
            )
            for number in 1..<commits {
                try database.execute(sql: "INSERT INTO line VALUES (?)", arguments: [number])
            }
        }
        let (file, log) = (scratch.file("original"), scratch.file("original-wal"))
        defer { try? queue.close() }
        try Data(contentsOf: URL(fileURLWithPath: file)).write(to: URL(fileURLWithPath: database))
        return try Data(contentsOf: URL(fileURLWithPath: log))
    }

    private func write(_ log: Data) throws {
        try log.write(to: URL(fileURLWithPath: database + "-wal"))
    }

    private func report(_ log: Data) throws -> LogReport {
        try write(log)
        return try #require(try LogFile(of: database).report())
    }

    /// Returns the number of commits that SQLite recovers: one for the table, and one for each row.
    private func recovered() throws -> Int {
        let original = try Data(contentsOf: URL(fileURLWithPath: database))
        defer { try? original.write(to: URL(fileURLWithPath: database)) }
        let queue = try DatabaseQueue(path: database)
        defer { try? queue.close() }
        return try queue.read { database in
            guard try database.tableExists("line") else { return 0 }
            return 1 + (try Int.fetchOne(database, sql: "SELECT count(*) FROM line") ?? 0)
        }
    }

    @Test(arguments: [512, 4096, 65_536]) func `an intact log is read as SQLite reads it`(pageSize: Int)
        throws
    {
        let log = try makeLog(commits: 12, pageSize: pageSize)
        let report = try report(log)
        #expect(report.commits == 12 && report.pageSize == pageSize)
        #expect(report.incompleteCommits == 0 && report.damage == nil && report.note == nil)
        #expect(try recovered() == 12)
    }

    @Test func `a missing log and an empty log give no report`() throws {
        _ = try makeLog(commits: 2)
        #expect(try LogFile(of: database).report() == nil)
        try write(Data())
        #expect(try LogFile(of: database).report() == nil)
    }

    @Test func `a truncated log is never damage, and recovery keeps as many commits as reported`() throws {
        let log = try makeLog(commits: 8)
        for length in stride(from: 1, to: log.count, by: 1000) {
            let report = try report(log.prefix(length))
            #expect(report.commits == (try recovered()), "\(length) bytes")
            #expect(report.damage == nil, "\(length) bytes")
        }
    }

    @Test func `a changed byte ends the log there, and is damage unless it is in the last commit`()
        throws
    {
        let log = try makeLog(commits: 8)
        for offset in stride(from: Self.headerBytes, to: log.count, by: 997) {
            var changed = log
            changed[offset] ^= 0x40
            let report = try report(changed)
            let taken = try recovered()
            #expect(report.commits == taken, "byte \(offset)")
            // A frame with a changed salt counts as one that is left over from an earlier use of the file.
            #expect(report.incompleteCommits <= 8 - taken, "byte \(offset)")
            #expect((report.damage != nil) == (report.droppedCommits > 1), "byte \(offset)")
            if 8 - taken > 2 { #expect(report.damage != nil, "byte \(offset)") }
        }
    }

    @Test func `frames of an earlier log in the same file are ignored`() throws {
        let queue = try DatabaseQueue(path: database)
        try queue.writeWithoutTransaction { database in
            try database.execute(sql: "PRAGMA journal_mode = WAL; CREATE TABLE line (number)")
            for number in 1...20 {
                try database.execute(sql: "INSERT INTO line VALUES (?)", arguments: [number])
            }
            // After this checkpoint, the next commit overwrites the beginning of the log.
            try database.execute(sql: "PRAGMA wal_checkpoint(FULL)")
            try database.execute(sql: "INSERT INTO line VALUES (21)")
        }
        let report = try #require(try LogFile(of: database).report())
        #expect(report.commits == 1 && report.incompleteCommits == 0 && report.damage == nil)
        try queue.close()
    }

    @Test func `a broken log header is damage, and a zeroed header is an empty log`() throws {
        var log = try makeLog(commits: 4)
        log[20] ^= 1
        #expect(try report(log).damage == "the header of its log is damaged")
        #expect(try recovered() == 0)
        #expect(try report(Data(count: 8192)).damage == nil)
    }
}
