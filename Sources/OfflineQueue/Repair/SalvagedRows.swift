internal import Dispatch
internal import Foundation
internal import GRDB
internal import NetwatchEventLoop

/// Reads the rows of a damaged database one by one, and skips the rows that cannot be read.
///
/// Rows are looked up only by their number, without an index. When reading fails, the reader jumps ahead, twice as far
/// each time, until a row can be read. From there it reads backward until reading fails again. The rows between the two
/// failures are recorded as a gap.
final class SalvagedRows: ArchiveRows {
    private struct Notes {
        var gaps: [ClosedRange<Int64>] = []
        var texts: [String] = []
    }

    private static let longestPage = 512

    private let copy: ReadableCopy
    private let database: DatabaseQueue
    private let notes = Lock(Notes())
    private let sealer: Sealer

    /// Opens the database. Blocks.
    init(in directory: String, _ sealer: Sealer) throws {
        self.sealer = sealer
        copy = try ReadableCopy(of: directory)
        database = try DatabaseQueue(path: copy.path, configuration: QueueDatabase.readingConfiguration)
    }

    /// The gaps in the table `request`, as ranges of row numbers, and notes about all failures.
    var damage: (gaps: [ClosedRange<Int64>], notes: [String]) {
        notes.withLock { ($0.gaps, $0.texts) }
    }

    /// Closes the database and removes the copy, if there is one. Blocks.
    func close() {
        try? database.close()
        copy.remove()
    }

    func rows(after cursor: ExportCursor, bytes: Int) async throws -> [ArchivedRow] {
        await DispatchQueue.global().run { [self] in
            database.writeWithoutTransaction { page(of: $0, after: cursor, bytes: bytes) }
        }
    }

    /// The number of unfinished requests according to the store's own counter; `nil` if the counter cannot be read. It
    /// shows how many requests were lost.
    func counted() async -> Int? {
        await DispatchQueue.global().run { [self] in
            try? database.writeWithoutTransaction { try $0.row(StoreStatements.load)?["requests"] }
        }
    }

    private func page(of database: Database, after cursor: ExportCursor, bytes: Int) -> [ArchivedRow] {
        let table = SalvagedTable(part: cursor.part, database: database, sealer: sealer)
        var (rows, size, position): ([ArchivedRow], Int, Int64) = ([], 0, cursor.position)
        while size < bytes, rows.count < Self.longestPage, let next = next(after: position, table) {
            let row = table.row(at: next)
            if case .success((_, let body)) = row.content { size += Int(clamping: body.size) }
            size += 1024
            rows.append(row)
            position = next
        }
        return rows
    }

    private func next(after position: Int64, _ table: SalvagedTable) -> Int64? {
        do throws(SalvagedTable.Failure) {
            return try table.first(after: position)
        } catch {
            guard case .damaged(let reason) = error else {
                note("\(table.name): \(error)")
                return nil
            }
            let next = table.beyondGap(after: position)
            note("\(table.name): \(reason)")
            let end = next.map { $0 - 1 } ?? .max
            if table.name == "request" { note(position + 1...max(position + 1, end)) }
            return next
        }
    }

    /// Records a gap. The rows at the end of a page may be read again for the next page, and with them the gaps.
    private func note(_ gap: ClosedRange<Int64>) {
        notes.withLock { notes in
            if gap.lowerBound > notes.gaps.last?.upperBound ?? 0 { notes.gaps.append(gap) }
        }
    }

    private func note(_ text: String) {
        notes.withLock { notes in
            if notes.texts.count < 100, !notes.texts.contains(text) { notes.texts.append(text) }
        }
    }
}

/// A table of a damaged database. Valid only within the call that gave access to the connection.
private struct SalvagedTable {
    enum Failure: Error, CustomStringConvertible {
        /// Reading failed at this row, but may succeed at others.
        case damaged(String)
        /// Reading fails at every row, for example because the table is missing.
        case unknown(String)

        var description: String {
            switch self {
            case .damaged(let reason), .unknown(let reason): "the row cannot be read: \(reason)"
            }
        }
    }

    let name: String
    private let key: String
    private let database: Database
    private let columns: String
    private let sealer: Sealer

    init(part: ExportCursor.Part, database: Database, sealer: Sealer) {
        self.sealer = sealer
        self.database = database
        (name, key) = part == .waiting ? ("request", "seq") : ("history", "position")
        columns = ArchivedRequest.columns(of: name, in: database)
    }

    private var condition: String { name == "history" ? " AND state = 'dead' AND is_whole = 1" : "" }

    /// Returns the number of the first row after a position; `nil` if there is none.
    func first(after position: Int64) throws(Failure) -> Int64? {
        let sql =
            "SELECT \(key) FROM \(name) NOT INDEXED WHERE \(key) > ?\(condition) ORDER BY \(key) LIMIT 1"
        return try reading { try database.row(sql, [position])?.place(key, after: position) }
    }

    private func last(from low: Int64, below high: Int64) throws(Failure) -> Int64? {
        let sql = """
            SELECT \(key) FROM \(name) NOT INDEXED WHERE \(key) > ? AND \(key) < ?\(condition)
            ORDER BY \(key) DESC LIMIT 1
            """
        return try reading { try database.row(sql, [low, high])?.place(key, after: low, before: high) }
    }

    /// Returns the number of the first readable row behind a gap; `nil` if there is none.
    ///
    /// - Parameter position: The number before the gap.
    func beyondGap(after position: Int64) -> Int64? {
        var step: Int64 = 1
        while step < .max / 4, position + step < .max / 2 {
            do throws(Failure) {
                // If no row is found, the end of the table is readable, but the jump may have skipped readable rows.
                // Therefore this goes backward from the end.
                let found = try first(after: position + step)
                return backward(from: found ?? .max, to: position)
            } catch {
                step *= 2
            }
        }
        return nil
    }

    /// Reads backward from `start` until reading fails, and returns the lowest row number that could be read; `nil` if
    /// there is none.
    private func backward(from start: Int64, to position: Int64) -> Int64? {
        var (place, found): (Int64, Int64?) = (start, start == .max ? nil : start)
        while let next = try? last(from: position, below: place) { (place, found) = (next, next) }
        return found
    }

    private func fetch(_ sql: String, _ arguments: StatementArguments) throws(Failure) -> StoredRow? {
        try reading { try database.row(sql, arguments) }
    }

    private func reading<Value>(_ body: () throws -> Value) throws(Failure) -> Value {
        do {
            return try body()
        } catch let error where StoreFault.isDamage(error) {
            throw .damaged(StoreFault.words(error))
        } catch {
            throw .unknown(StoreFault.words(error))
        }
    }
}

// MARK: - One row

extension SalvagedTable {
    /// Reads one request and validates it. The result contains the error if that fails.
    func row(at position: Int64) -> ArchivedRow {
        let cursor = ExportCursor(part: name == "request" ? .waiting : .dead, position: position)
        var id = "number \(position)"
        do {
            var (request, body) = try content(at: position, &id)
            request.body = try ArchivedRequest.Body(body)
            _ = try request.validated()
            return ArchivedRow(cursor: cursor, id: id, content: .success((request, body)))
        } catch {
            return ArchivedRow(cursor: cursor, id: id, content: .failure(QueueError(reading: error)))
        }
    }

    private func content(at position: Int64, _ id: inout String) throws -> (ArchivedRequest, StoredBody) {
        if let row = try fetch("SELECT id FROM \(name) NOT INDEXED WHERE \(key) = ?", [position]) {
            id = try row["id"]
        }
        let sequence = try sequence(at: position)
        let lane = try lane(at: position)
        let body = try fetch("SELECT * FROM body WHERE seq = ?", [sequence])
        let bytes = try body?["bytes"] as Data?
        // Versions of the schema before 9 have no hash.
        let digest = try body.flatMap { try $0.has("sha256") ? $0["sha256"] as Data? : nil }
        let stored = try fetch(
            """
            SELECT \(columns), ? AS label, ? AS mode, ? AS bytes, ? AS sha256
            FROM \(name) NOT INDEXED WHERE \(key) = ?
            """,
            [lane?.label ?? "", (lane?.mode ?? .parallel).rawValue, bytes, digest, position]
        )
        guard let stored else { throw Failure.unknown("the row no longer exists") }
        let found = try stored.opened(by: sealer)
        var request = try ArchivedRequest(found).withoutSecrets()
        if request.mayWaitForOthers { find(dependenciesOf: sequence, &request) }
        // Without its lane it is unknown whether the request must wait for earlier ones, so it is held.
        if lane == nil, request.state != .dead {
            let reason = "its lane could not be read, so it may have to wait for other requests"
            request.holdWithoutDependencies(.user, reason)
        }
        return (request, try StoredBody(whole: found))
    }

    private func sequence(at position: Int64) throws -> Int64 {
        guard name == "history" else { return position }
        let row = try fetch("SELECT seq FROM history NOT INDEXED WHERE position = ?", [position])
        return try row?["seq"] ?? 0
    }

    /// Returns the label and mode of the row's lane; `nil` if the lane cannot be read.
    private func lane(at position: Int64) throws -> (label: String, mode: LaneKey.Mode)? {
        let found: StoredRow?
        if name == "history" {
            found = try fetch("SELECT label, mode FROM history NOT INDEXED WHERE position = ?", [position])
        } else {
            let row = try fetch("SELECT lane_id FROM request NOT INDEXED WHERE seq = ?", [position])
            guard let id: Int64 = try row?["lane_id"] else { return nil }
            found = try? fetch("SELECT label, mode FROM lane NOT INDEXED WHERE id = ?", [id])
        }
        return try? found.map { try ($0["label"], $0["mode"]) }
    }

    /// Reads the ids of the requests on which a request depends. If one of them cannot be read, it is unknown whether
    /// the request may be sent. The request is then held. It is also held if it would wait for itself, because an
    /// import refuses cycles.
    private func find(dependenciesOf sequence: Int64, _ request: inout ArchivedRequest) {
        do {
            let sql = "SELECT on_seq FROM depends WHERE seq = ? AND is_any = 0"
            let places = try Int64.fetchAll(try database.cachedStatement(sql: sql), arguments: [sequence])
            request.after = try places.map { place in
                guard let row = try fetch("SELECT id FROM request NOT INDEXED WHERE seq = ?", [place]) else {
                    throw Failure.unknown("the row does not exist")
                }
                return try row["id"]
            }
            let later = places.filter { $0 > sequence }
            let cycle = try reading { try database.cycle(of: sequence, dependingOn: later) }
            if let cycle { request.holdWithoutDependencies(.dependency, cycle) }
        } catch {
            request.holdWithoutDependencies(.dependency, "a request that it depends on could not be read")
        }
    }
}
