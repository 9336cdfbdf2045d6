internal import Foundation
internal import GRDB

/// The queue's store in one directory of one process: SQLite in WAL mode, synced at every commit.
package final class SQLiteQueueStore: QueueStore {
    /// How many finished requests are kept for listing and for recognizing their ids.
    package static let historyLimit = 10_000

    let batcher: CommitBatcher
    /// Rises with every opening; tells this run's leases from those of runs that died.
    package let ownerEpoch: Int64
    let limits: Limits

    /// Bounds that keep a wrong clock from delaying anything for long.
    package struct Limits: Hashable, Sendable {
        /// No request is due later than this from now.
        package var longestDelay: Duration = .seconds(900)
        /// No lane is closed for longer.
        package var longestClosure: Duration = RetryAfter.longest
        /// How many finished requests are kept.
        package var history = SQLiteQueueStore.historyLimit

        package init() {}
    }

    /// Opens the store in a directory, made when missing, with what is missing above it.
    ///
    /// - Throws: ``QueueError``: `alreadyOwned`, `directoryUnusable`, `storeUnusable`, `storeFailed`.
    package init(directory path: String, limits: Limits = Limits()) async throws {
        let directory = try await QueueDatabase.offPool { try QueueDirectory(path: path) }
        let database = try await QueueDatabase.open(in: directory)
        let batcher = CommitBatcher(database: database, directory: directory)
        do {
            ownerEpoch = try await batcher.write(rows: 1) { database in
                try database.execute(sql: "UPDATE meta SET owner_epoch = owner_epoch + 1")
                return try Int64.fetchOne(database, sql: "SELECT owner_epoch FROM meta")!
            }
        } catch {
            await batcher.close()
            throw error
        }
        self.batcher = batcher
        self.limits = limits
    }

    /// How many transactions were committed.
    package var commits: Int { batcher.commits }

    /// What SQLite itself says of a setting of the writing connection, for tests and diagnosis.
    package func pragma(_ name: String) async throws -> String? {
        try await batcher.read { try String.fetchOne($0, sql: "PRAGMA \(name)") }
    }

    package func close() async {
        await batcher.close()
    }
}

// MARK: - Lanes

extension SQLiteQueueStore {
    static func laneID(of key: LaneKey, _ database: Database) throws -> Int64 {
        let origin = key.origin
        let arguments: StatementArguments = [
            origin.scheme, origin.host, origin.port, key.label, key.mode.rawValue,
        ]
        let find = try database.cachedStatement(
            sql: "SELECT id FROM lane WHERE (scheme, host, port, label, mode) = (?, ?, ?, ?, ?)"
        )
        if let id = try Int64.fetchOne(find, arguments: arguments) { return id }
        try database.execute(
            sql: "INSERT INTO lane (scheme, host, port, label, mode) VALUES (?, ?, ?, ?, ?)",
            arguments: arguments
        )
        return database.lastInsertedRowID
    }

    static func lane(_ id: Int64, now: Timestamp, limits: Limits, _ database: Database) throws -> LaneRecord {
        let read = try database.cachedStatement(sql: "SELECT * FROM lane WHERE id = ?")
        let row = try Row.fetchOne(read, arguments: [id])!
        let origin = Origin(scheme: row["scheme"], host: row["host"], port: row["port"])
        let key = LaneKey(origin: origin, label: row["label"], mode: LaneKey.Mode(rawValue: row["mode"])!)
        let notBefore = (row["not_before"] as Int64?).map(Timestamp.init(milliseconds:))
        return LaneRecord(
            id: id,
            key: key,
            notBefore: notBefore.map { min($0, now + limits.longestClosure) },
            due: try due(lane: id, mode: key.mode, now: now, limits: limits, database)
        )
    }

    static func mode(ofLane id: Int64, _ database: Database) throws -> LaneKey.Mode {
        let read = try database.cachedStatement(sql: "SELECT mode FROM lane WHERE id = ?")
        return LaneKey.Mode(rawValue: try String.fetchOne(read, arguments: [id])!)!
    }

    /// When the lane's next request is due. A backward step of the clock makes requests look due in a far
    /// future; none is later than the longest delay allows.
    static func due(
        lane: Int64,
        mode: LaneKey.Mode,
        now: Timestamp,
        limits: Limits,
        _ database: Database
    ) throws -> Timestamp? {
        let sql =
            switch mode {
            case .parallel:
                "SELECT next_at FROM request WHERE lane_id = ? AND state = 'pending' ORDER BY next_at LIMIT 1"
            case .fifo:
                """
                SELECT next_at FROM request WHERE state = 'pending'
                AND seq = (SELECT seq FROM request WHERE lane_id = ? ORDER BY seq LIMIT 1)
                """
            }
        let found = try Int64.fetchOne(try database.cachedStatement(sql: sql), arguments: [lane])
        return found.map { min(Timestamp(milliseconds: $0), now + limits.longestDelay) }
    }
}
