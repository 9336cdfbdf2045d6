internal import Foundation
internal import GRDB

/// A table of a damaged database, or of the one that was rebuilt from its pages. Its rows are looked up only by their
/// number, without an index. Valid only within the call that gave access to the connection.
struct SalvagedTable {
    enum Failure: Error, CustomStringConvertible {
        /// Reading failed at this row, but may succeed at others.
        case damaged(String)
        /// Reading fails at every row behind this one, for example because the table is missing.
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
    private let isRebuilt: Bool
    private let columns: String
    private let sealer: Sealer

    /// - Parameter isRebuilt: Whether this is the database of a ``RebuiltDatabase``. Default `false`.
    init(part: ExportCursor.Part, database: Database, isRebuilt: Bool = false, sealer: Sealer) {
        (self.isRebuilt, self.sealer) = (isRebuilt, sealer)
        self.database = database
        (name, key) = part == .waiting ? ("request", "seq") : ("history", "position")
        columns = ArchivedRequest.columns(of: name)
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
    /// Reads one request and validates it. The row contains the error if that fails.
    ///
    /// - Returns: The row, and whether everything that belongs to it could be read.
    func row(at position: Int64) -> (row: ArchivedRow, isWhole: Bool) {
        let cursor = ExportCursor(part: name == "request" ? .waiting : .dead, position: position)
        var (id, isWhole) = ("number \(position)", true)
        do {
            var (request, body) = try content(at: position, &id, &isWhole)
            request.body = try ArchivedRequest.Body(body)
            _ = try request.validated()
            return (ArchivedRow(cursor: cursor, id: id, content: .success((request, body))), isWhole)
        } catch {
            let row = ArchivedRow(cursor: cursor, id: id, content: .failure(QueueError(reading: error)))
            return (row, isWhole && !(error is Failure))
        }
    }

    private func content(
        at position: Int64,
        _ id: inout String,
        _ isWhole: inout Bool
    ) throws -> (ArchivedRequest, StoredBody) {
        if let row = try fetch("SELECT id FROM \(name) NOT INDEXED WHERE \(key) = ?", [position]) {
            id = try row["id"]
        }
        let sequence = try sequence(at: position)
        let lane = try lane(at: position)
        let bytes = try fetch("SELECT bytes FROM body WHERE seq = ?", [sequence]).map {
            try $0["bytes"] as Data
        }
        let stored = try fetch(
            """
            SELECT \(columns), ? AS label, ? AS mode, ? AS bytes
            FROM \(name) NOT INDEXED WHERE \(key) = ?
            """,
            [lane?.label ?? "", (lane?.mode ?? .parallel).rawValue, bytes, position]
        )
        guard let stored else { throw Failure.unknown("the row no longer exists") }
        let found = try stored.opened(by: sealer)
        let content = try RequestContent(found)
        var request = try ArchivedRequest(found, content).withoutSecrets()
        if request.mayWaitForOthers, !find(dependenciesOf: sequence, &request) { isWhole = false }
        if lane == nil, request.state != .dead { isWhole = false }
        try hold(&request, at: sequence, hasLane: lane != nil)
        return (request, try StoredBody(whole: found, content.digest))
    }

    /// Holds an unfinished request if it is unknown whether it may be sent.
    private func hold(_ request: inout ArchivedRequest, at sequence: Int64, hasLane: Bool) throws {
        guard request.state != .dead else { return }
        if !hasLane {
            // The request may have to wait for earlier ones.
            let reason = "its lane could not be read, so it may have to wait for other requests"
            request.holdWithoutDependencies(.user, reason)
        }
        if isRebuilt, try RebuiltDatabase.isUncertain(sequence, in: database) {
            let reason =
                "it was found in an unassigned part of the damaged database, so it may have ended already"
            request.holdWithoutDependencies(.user, reason)
        }
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
    ///
    /// - Returns: Whether all of them could be read.
    private func find(dependenciesOf sequence: Int64, _ request: inout ArchivedRequest) -> Bool {
        do {
            let sql = "SELECT on_seq FROM depends WHERE seq = ? AND is_any = 0"
            let places = try Int64.fetchAll(try database.cachedStatement(sql: sql), arguments: [sequence])
            request.dependencies = try places.map { place in
                guard let row = try fetch("SELECT id FROM request NOT INDEXED WHERE seq = ?", [place]) else {
                    throw Failure.unknown("the row does not exist")
                }
                return try row["id"]
            }
            let later = places.filter { $0 > sequence }
            let cycle = try reading { try database.cycle(of: sequence, dependingOn: later) }
            if let cycle { request.holdWithoutDependencies(.dependency, cycle) }
            return true
        } catch {
            request.holdWithoutDependencies(.dependency, "a request that it depends on could not be read")
            return false
        }
    }
}
