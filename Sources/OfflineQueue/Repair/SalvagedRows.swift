internal import Dispatch
internal import Foundation
internal import GRDB
internal import NetwatchEventLoop

/// Reads the rows of a damaged database one by one, and skips the rows that cannot be read.
///
/// SQLite reads what it can. When it fails, the reader jumps ahead, twice as far each time, until a row can be read. From
/// there it reads backward until reading fails again. The rows between the two failures are a gap. A gap is filled with
/// the rows of a ``RebuiltDatabase``, which does not need the page that SQLite cannot read. If SQLite cannot open the
/// database at all, all rows are read from there.
final class SalvagedRows: ArchiveRows {
    private struct Notes {
        var gaps: [ClosedRange<Int64>] = []
        var texts: [String] = []
    }

    /// Rows that SQLite cannot read.
    private struct Gap {
        /// The number before the first of them.
        let position: Int64
        /// The number of the first row behind the gap that can be read; `nil` if there is none.
        let next: Int64?

        func contains(_ row: Int64) -> Bool { row > position && row < next ?? .max }
        /// Whether the row after a position is in the gap.
        func continues(after position: Int64) -> Bool { position >= self.position && position < next ?? .max }
    }

    private enum Rebuilt {
        case unneeded
        case failed
        case ready(RebuiltDatabase)
    }

    private static let longestPage = 512

    private let directory: String
    private let copy: ReadableCopy
    /// `nil` if SQLite cannot open the database.
    private let original: DatabaseQueue?
    private let rebuilt = Lock(Rebuilt.unneeded)
    private let gaps = Lock<[ExportCursor.Part: Gap]>([:])
    private let notes = Lock(Notes())
    private let sealer: Sealer

    /// Opens the database. Blocks.
    ///
    /// - Throws: An error if a truncated database cannot be copied.
    init(in directory: String, _ sealer: Sealer) throws {
        (self.directory, self.sealer) = (directory, sealer)
        let copy = try ReadableCopy(of: directory)
        self.copy = copy
        let opened = Self.open(copy.path)
        original = try? opened.get()
        guard case .failure(let failure) = opened else { return }
        let rebuilt = rebuiltDatabase()
        if rebuilt == nil { note("the database \(failure.reason)") }
        if let text = rebuilt?.note { note("the database \(failure.reason); \(text)") }
    }

    private struct OpenFailure: Error {
        let reason: String
    }

    private static func open(_ path: String) -> Result<DatabaseQueue, OpenFailure> {
        // SQLite would delete the log of an empty database.
        guard FileSystem.size(of: path) > 0 else {
            return .failure(OpenFailure(reason: "is empty or missing"))
        }
        return Result { try DatabaseQueue(path: path, configuration: QueueDatabase.readingConfiguration) }
            .mapError { OpenFailure(reason: "cannot be opened: \(StoreFault.words($0))") }
    }

    /// The gaps in the table `request`, as ranges of row numbers, and notes about all failures.
    var damage: (gaps: [ClosedRange<Int64>], notes: [String]) {
        notes.withLock { ($0.gaps, $0.texts) }
    }

    /// Closes the databases and removes those that were created. Blocks.
    func close() {
        try? original?.close()
        copy.remove()
        if case .ready(let database) = rebuilt.withLock({ $0 }) { database.remove() }
    }

    func rows(after cursor: ExportCursor, bytes: Int) async throws -> [ArchivedRow] {
        await DispatchQueue.global().run { [self] in
            guard let original else { return page(of: nil, after: cursor, bytes: bytes) }
            return original.writeWithoutTransaction { page(of: $0, after: cursor, bytes: bytes) }
        }
    }

    /// The number of unfinished requests according to the store's own counter; `nil` if the counter cannot be read. It
    /// shows how many requests were lost.
    func counted() async -> Int? {
        await DispatchQueue.global().run { [self] in
            guard let database = original ?? rebuiltDatabase()?.database else { return nil }
            return try? database.writeWithoutTransaction { try $0.row(StoreStatements.load)?["requests"] }
        }
    }

    private func page(of database: Database?, after cursor: ExportCursor, bytes: Int) -> [ArchivedRow] {
        let table = database.map { SalvagedTable(part: cursor.part, database: $0, sealer: sealer) }
        var (rows, size, position): ([ArchivedRow], Int, Int64) = ([], 0, cursor.position)
        while size < bytes, rows.count < Self.longestPage,
            let row = row(after: position, cursor.part, table)
        {
            if case .success((_, let body)) = row.content { size += Int(clamping: body.size) }
            size += 1024
            rows.append(row)
            position = row.cursor.position
        }
        return rows
    }

    private func row(
        after position: Int64,
        _ part: ExportCursor.Part,
        _ table: SalvagedTable?
    ) -> ArchivedRow? {
        guard let table else {
            return row(in: Gap(position: position, next: nil), after: position, part, nil)
        }
        if let gap = gaps.withLock({ $0[part] }), gap.continues(after: position) {
            return row(in: gap, after: position, part, table)
        }
        do throws(SalvagedTable.Failure) {
            guard let next = try table.first(after: position) else { return nil }
            return row(at: next, part, of: table)
        } catch {
            return row(in: gap(after: position, part, table, error), after: position, part, table)
        }
    }

    /// Reads a row of the damaged database. If a part of it cannot be read, for example its body or its lane, the row is
    /// read from the rebuilt database.
    private func row(at position: Int64, _ part: ExportCursor.Part, of table: SalvagedTable) -> ArchivedRow {
        let found = table.row(at: position)
        guard !found.isWhole, let other = inRebuilt(part, { $0.row(at: position) }),
            case .success = other.row.content
        else { return found.row }
        return other.row
    }
}

// MARK: - Gaps

extension SalvagedRows {
    /// Finds the end of a gap, and records the reason.
    private func gap(
        after position: Int64,
        _ part: ExportCursor.Part,
        _ table: SalvagedTable,
        _ failure: SalvagedTable.Failure
    ) -> Gap {
        var next: Int64?
        switch failure {
        case .damaged(let reason):
            next = table.beyondGap(after: position)
            note("\(table.name): \(reason)")
        case .unknown:
            note("\(table.name): \(failure)")
        }
        let gap = Gap(position: position, next: next)
        gaps.withLock { $0[part] = gap }
        return gap
    }

    /// Returns the next row in a gap, from the rebuilt database, or else the first row behind the gap.
    private func row(
        in gap: Gap,
        after position: Int64,
        _ part: ExportCursor.Part,
        _ table: SalvagedTable?
    ) -> ArchivedRow? {
        let found = inRebuilt(part) { rebuilt -> ArchivedRow? in
            guard let next = try? rebuilt.first(after: position), gap.contains(next) else { return nil }
            return rebuilt.row(at: next).row
        }
        let row = found ?? nil
        if part == .waiting { noteGap(after: position, before: row?.cursor.position ?? gap.next) }
        if let row { return row }
        guard let table, let next = gap.next else { return nil }
        return self.row(at: next, part, of: table)
    }

    /// Records the numbers up to the next row as lost, unless the rebuilt database contains the whole table.
    ///
    /// - Parameter next: The number of the next row; `nil` if there is none.
    private func noteGap(after position: Int64, before next: Int64?) {
        let (first, last) = (position + 1, next.map { $0 - 1 } ?? .max)
        guard first <= last, rebuiltDatabase()?.incomplete.contains("request") != false else { return }
        // The rows at the end of a page may be read again for the next page, and with them the gaps.
        notes.withLock { notes in
            if first > notes.gaps.last?.upperBound ?? 0 { notes.gaps.append(first...last) }
        }
    }

    private func note(_ text: String) {
        notes.withLock { notes in
            if notes.texts.count < 100, !notes.texts.contains(text) { notes.texts.append(text) }
        }
    }
}

// MARK: - The rebuilt database

extension SalvagedRows {
    /// Calls `body` with a table of the rebuilt database; returns `nil` if that database cannot be created.
    private func inRebuilt<Value>(_ part: ExportCursor.Part, _ body: (SalvagedTable) -> Value) -> Value? {
        rebuiltDatabase()?.database.writeWithoutTransaction { database in
            body(SalvagedTable(part: part, database: database, isRebuilt: true, sealer: sealer))
        }
    }

    /// Returns the rebuilt database, which the first call creates; `nil` if that failed. No two calls are concurrent,
    /// because the pages of an export are read one after another.
    private func rebuiltDatabase() -> RebuiltDatabase? {
        switch rebuilt.withLock({ $0 }) {
        case .ready(let database): return database
        case .failed: return nil
        case .unneeded: break
        }
        do {
            let database = try RebuiltDatabase(in: directory)
            rebuilt.withLock { $0 = .ready(database) }
            return database
        } catch {
            rebuilt.withLock { $0 = .failed }
            note("the pages of the database cannot be read: \(StoreFault.words(error))")
            return nil
        }
    }
}
