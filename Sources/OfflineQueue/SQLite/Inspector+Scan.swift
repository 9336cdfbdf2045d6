internal import Foundation
internal import GRDB
internal import GRDBSQLite

/// The pieces of a scan.
///
/// A small database is checked as a whole, a larger one table by table, with `PRAGMA quick_check`. SQLite cannot
/// interrupt and continue this check. The rows of a table for which the time limit does not suffice are read in pages
/// instead, and then its indexes. SQLite checks each page that it reads (`cell_size_check`), but then not the relations
/// between the pages.
extension Inspector {
    /// The number of attempts to read an index, with time limits that double. An attempt finds the pages that earlier
    /// ones have read in the kernel's cache. After the last attempt, the scan continues without the rest of the index.
    private static let indexAttempts = 5

    /// The maximum size in bytes of a database whose structure SQLite checks before version 3.40, which cannot end the
    /// check at a time limit: 64 MiB.
    private static let largestUnlimited: Int64 = 64 << 20

    /// Reads a piece of the store.
    func scan(_ position: ScanPosition, _ bodies: InspectedBodies, within limit: Duration) async throws
        -> ScanPiece
    {
        try await withTaskCancellationHandler {
            let start = ContinuousClock.now
            var piece = ScanPiece()
            piece.next = try await read(position, bodies, within: limit, &piece.report)
            // The check of requests rests after each read. A cancellation shortens the rest, and the piece counts
            // nevertheless.
            if case .requests = position { return piece }
            try? await bodies.pace?.rest(since: start)
            return piece
        } onCancel: {
            end()
        }
    }

    /// Reads a piece, and returns the position of the next one; `nil` at the end.
    private func read(
        _ position: ScanPosition,
        _ bodies: InspectedBodies,
        within limit: Duration,
        _ report: inout QueueVerification
    ) async throws -> ScanPosition? {
        switch position {
        case .database:
            let isUnfinished = try await scanStructure(of: nil, within: limit, &report)
            return isUnfinished ? .table(after: "") : .requests(.waiting, after: 0)
        case .table(let last):
            let found = try await examine("sqlite_schema", &report) { try await nextTable(after: last) }
            guard let table = found ?? nil else { return .requests(.waiting, after: 0) }
            let isUnfinished = try await scanStructure(of: table, within: limit, &report)
            return isUnfinished ? .rows(of: table, after: -1) : .table(after: table)
        case .rows(let table, let last):
            let found = try await examine(table, &report) { try await readRows(of: table, after: last) }
            guard let key = found ?? nil else { return .index(of: table, after: "", attempt: 1) }
            return .rows(of: table, after: key)
        case .index(let table, let last, let attempt):
            return try await scanIndex(of: table, after: last, attempt: attempt, within: limit, &report)
        case .requests(let part, let place):
            return try await scanRequests(part, after: place, bodies, &report)
        }
    }

    /// Runs a part of the scan. Damage, and pages that the disk cannot read, become findings.
    ///
    /// - Returns: The result of `body`; `nil` after such an error.
    private func examine<Value>(
        _ subject: String,
        _ report: inout QueueVerification,
        _ body: () async throws -> Value
    ) async throws -> Value? {
        do {
            return try await body()
        } catch let error where StoreFault.isDamage(error) {
            report.found(.database, subject, StoreFault.words(error))
        } catch let error where StoreFault.isUnreadable(error) {
            report.found(.databaseUnreadable, subject, StoreFault.words(error))
        }
        return nil
    }
}

// MARK: - The structure

extension Inspector {
    /// Checks the structure of a table, or of the whole database.
    ///
    /// - Returns: Whether the time limit was reached.
    private func scanStructure(
        of table: String?,
        within limit: Duration,
        _ report: inout QueueVerification
    ) async throws -> Bool {
        let subject = table ?? "queue.sqlite"
        let found = try await examine(subject, &report) {
            guard try await endsAtLimit() else { return QuickCheck.unfinished }
            return try await quickCheck(of: table, within: limit)
        }
        if case .damaged(let damage) = found { report.found(.database, subject, damage) }
        return found == .unfinished
    }

    /// Returns whether a check of the structure ends at its time limit, or the database is so small that it ends soon.
    private func endsAtLimit() async throws -> Bool {
        if sqlite3_libversion_number() >= 3_040_000 { return true }
        let sql = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
        let size = try await read { try Int64.fetchOne($0, sql: sql) }
        return (size ?? 0) <= Self.largestUnlimited
    }

    /// Returns the first table after another one, by name; `nil` at the end.
    private func nextTable(after name: String) async throws -> String? {
        try await read { database in
            // The schema does not contain itself.
            let tables = """
                SELECT 'sqlite_schema' AS name UNION ALL
                SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0
                """
            let next = "SELECT name FROM (\(tables)) WHERE name > ? ORDER BY name LIMIT 1"
            return try database.row(next, [name]).map { try $0["name"] }
        }
    }
}

// MARK: - Large tables

extension Inspector {
    /// Reads the next rows of a table, about 1 MiB.
    ///
    /// - Returns: The key of the last row that was read; `nil` at the end. All rows with this key were read.
    private func readRows(of table: String, after last: Int64) async throws -> Int64? {
        try await read { database in
            guard let key = try Self.key(of: table, database) else {
                // Only the small tables of SQLite and of GRDB have no numbers as keys.
                _ = try database.rows("SELECT * FROM \(table.quotedDatabaseIdentifier)")
                return nil
            }
            let sql = """
                SELECT \(key) AS scan_key, * FROM \(table.quotedDatabaseIdentifier) NOT INDEXED
                WHERE \(key) > ? ORDER BY \(key)
                """
            let rows = try database.cursor(sql, [last])
            var (bytes, complete, current) = (0, last, last)
            while let row = try rows.next() {
                let next = try row.place("scan_key", after: complete)
                if next != current {
                    (complete, current) = (current, next)
                    if bytes >= Self.pageBytes { return complete }
                }
                bytes += row.approximateSize
            }
            return nil
        }
    }

    /// Returns the first column of a table's primary key; `nil` if it does not contain numbers. Several rows may have
    /// the same value in it.
    private static func key(of table: String, _ database: Database) throws -> String? {
        let sql = "SELECT name FROM pragma_table_info(?) WHERE pk = 1 AND upper(type) IN ('INTEGER', 'INT')"
        return try database.row(sql, [table]).map { (try $0["name"] as String).quotedDatabaseIdentifier }
    }

    private func scanIndex(
        of table: String,
        after last: String,
        attempt: Int,
        within limit: Duration,
        _ report: inout QueueVerification
    ) async throws -> ScanPosition {
        let found = try await examine(table, &report) { try await nextIndex(of: table, after: last) }
        guard let index = found ?? nil else { return .table(after: table) }
        let isRead = try await examine(index.name, &report) {
            try await read(index, of: table, within: limit * (1 << (attempt - 1)))
        }
        let isEnd = isRead ?? true || attempt >= Self.indexAttempts
        return isEnd
            ? .index(of: table, after: index.name, attempt: 1)
            : .index(of: table, after: last, attempt: attempt + 1)
    }

    private struct Index: Sendable {
        let name: String
        /// The condition of a partial index; empty for other indexes.
        let condition: String
    }

    private func nextIndex(of table: String, after name: String) async throws -> Index? {
        try await read { database in
            let sql = """
                SELECT name, sql FROM sqlite_schema
                WHERE type = 'index' AND tbl_name = ? AND rootpage > 0 AND name > ? ORDER BY name LIMIT 1
                """
            return try database.row(sql, [table, name]).map { row in
                // An index of a UNIQUE constraint has no statement.
                let statement: String? = try row["sql"]
                let condition = statement?.range(of: #"(?s)\sWHERE\s.*"#, options: .regularExpression)
                return Index(name: try row["name"], condition: condition.map { String(statement![$0]) } ?? "")
            }
        }
    }

    /// Reads an index. For the condition of a partial index, SQLite may read rows of the table, too.
    ///
    /// - Returns: `false` if the time limit was reached.
    private func read(_ index: Index, of table: String, within limit: Duration) async throws -> Bool {
        // Not `count`, for which SQLite does not check the time limit.
        let sql = """
            SELECT total(1) FROM \(table.quotedDatabaseIdentifier)
            INDEXED BY \(index.name.quotedDatabaseIdentifier)\(index.condition)
            """
        return try await limited(to: limit) { _ = try $0.row(sql) } != nil
    }
}

// MARK: - Requests

extension Inspector {
    private func scanRequests(
        _ part: ExportCursor.Part,
        after place: Int64,
        _ bodies: InspectedBodies,
        _ report: inout QueueVerification
    ) async throws -> ScanPosition? {
        let cursor = ExportCursor(part: part, position: place)
        var found = report
        let next = try await examine("queue.sqlite", &report) {
            try await checkRequests(after: cursor, bodies, into: &found)
        }
        guard let next else { return cursor.nextPart.map { .requests($0.part, after: 0) } }
        report = found
        return next.map { .requests($0.part, after: $0.position) }
    }
}
