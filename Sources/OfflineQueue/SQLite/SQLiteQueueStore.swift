internal import Dispatch
internal import Foundation
internal import GRDB
internal import NetwatchEventLoop

/// A queue store in an SQLite database (WAL mode) in one directory, which one process owns. Every commit of durability
/// `full` is synced before its callers are resumed.
package final class SQLiteQueueStore: QueueStore {
    package let changes = LaneChanges()
    package let completions = CompletionChanges()
    /// Always `nil`: leases do not expire. When the process that holds them ends, its lock on the directory ends, too.
    /// The next owner of the directory then recovers the requests.

    let batcher: CommitBatcher
    private let reader: StoreReader
    let environment: StoreEnvironment
    package let spool: BodySpool
    /// The write-ahead log that the previous owner left; `nil` if there was none.
    let openedLog: LogReport?
    /// Notes about encryption keys that were missing when the store was opened.
    private let missingKeys: [String]
    /// The inspections in progress, which ``close()`` ends; `nil` when the store is closing.
    private let inspections = Lock<[Inspector]?>([])

    /// The number of this run of the queue, which increases each time the store is opened. It distinguishes leases of
    /// this run from those of runs that ended without a stop.
    package var ownerEpoch: Int64 { environment.ownerEpoch }

    /// Opens the store in a directory, and creates the directory and its parents if they are missing.
    ///
    /// - Throws: ``QueueError``: `alreadyOwned`, `directoryUnusable`, `storeUnusable`, `storeUnavailable`,
    ///   `storeFailed`.
    package init(
        directory path: String,
        settings: StoreSettings = StoreSettings(),
        clock: StoreClock = .system,
        files: (any SpoolFiles)? = nil
    ) async throws {
        let keys = try await Self.keys(in: settings.encryptionKeyFile)
        if let foreign = CommitBatcher.foreignProcess { throw foreign }
        let directory = try await DispatchQueue.global().run { try QueueDirectory(path: path) }
        let database: DatabaseQueue
        (database, openedLog) = try await QueueDatabase.open(in: directory)
        let batcher = CommitBatcher(database: database, directory: directory)
        do {
            let reserve = await Self.reserve(of: settings, at: path) ?? 0
            let spool =
                if let files {
                    BodySpool(files: files, reserve: reserve, keys: keys)
                } else {
                    try await BodySpool.opening("\(path)/spool", reserve: reserve, keys: keys)
                }
            self.spool = spool
            environment = try await batcher.write(CommitBatcher.Load(rows: 1)) { database in
                try StoreEnvironment(
                    opening: database,
                    directory: path,
                    settings: settings,
                    clock: clock,
                    stagedBytes: spool.stagedBytes,
                    events: batcher.events,
                    keys: keys
                )
            }
            do { try environment.sealer.requireUnlocked() } catch { spool.refuseBodies(with: error) }
            missingKeys = try await batcher.read { [environment] in
                try Self.missingKeys($0, environment.sealer)
            }
            batcher.watch(try await Self.location(of: directory, spool))
            reader = try await Self.reader(of: directory)
            batcher.setLogTruncation(LogTruncation(of: "\(directory.databasePath)-wal", reader: reader))
        } catch {
            let damage = directory.damage.text
            await batcher.close()
            throw damage.map { StoreFault.damaged($0).error(path: directory.databasePath) } ?? error
        }
        self.batcher = batcher
    }

    private static func location(of directory: QueueDirectory, _ spool: BodySpool) async throws
        -> StoreLocation
    {
        try await DispatchQueue.global().run {
            var location = try directory.location()
            try spool.add(to: &location)
            return location
        }
    }

    private static func reader(of directory: QueueDirectory) async throws -> StoreReader {
        let path = directory.databasePath
        return try await DispatchQueue.global().run {
            do {
                return try StoreReader(database: path)
            } catch {
                throw StoreFault(error).error(path: path)
            }
        }
    }

    package var openingNotes: [String] { [openedLog?.note].compactMap(\.self) + missingKeys }

    private static func keys(in path: String?) async throws -> KeyRing? {
        guard let path else { return nil }
        return try await DispatchQueue.global().run { () throws(QueueError) in
            try KeyFile(path: path).keys()
        }
    }

    /// Returns a note for each key that encrypts requests and that the queue does not have, and one before them if the
    /// queue accepts no requests.
    private static func missingKeys(_ database: Database, _ sealer: Sealer) throws -> [String] {
        var notes: [String] = []
        do throws(QueueError) { try sealer.requireUnlocked() } catch { notes.append(error.message) }
        let ids: [String] = try database.rows(StoreStatements.keyIDs).map { try $0["key"] }
        // The requests are counted only for a note, because that takes a time proportional to their number.
        guard ids.contains(where: { sealer.keys?[$0] == nil }) else { return notes }
        return try notes
            + database.rows(StoreStatements.keyUse).compactMap { row in
                let (id, requests): (String, Int) = try (row["key_id"], row["number"])
                guard sealer.keys?[id] == nil else { return nil }
                let place = sealer.keys == nil ? "is missing" : "is not in the key file"
                return
                    "the encryption key `\(id)` of \(requests) stored requests \(place); those that are not finished "
                    + "are held until a restart with the key in the key file"
            }
    }

    package func check() async throws {
        try await DispatchQueue.global().run { [batcher] in try batcher.check() }
    }

    package var commitDurations: DurationHistogram { batcher.durations }

    /// Returns the value that SQLite reports for a pragma of the writing connection, for tests and diagnosis.
    package func pragma(_ name: String) async throws -> String? {
        try await batcher.read { try String.fetchOne($0, sql: "PRAGMA \(name)") }
    }

    /// Returns SQLite's query plan for a statement, one string per step.
    package func plan(of sql: String) async throws -> [String] {
        try await batcher.read { database in
            let statement = try database.makeStatement(sql: "EXPLAIN QUERY PLAN " + sql)
            // EXPLAIN does not run the statement, so it needs no argument values.
            statement.setUncheckedArguments(StatementArguments())
            return try Row.fetchAll(statement).map { $0["detail"] }
        }
    }

    package func close() async {
        let inspectors = inspections.withLock { inspections in
            defer { inspections = nil }
            return inspections
        }
        for inspector in inspectors ?? [] { inspector.end() }
        await batcher.close { [reader] in reader.close() }
        changes.finish()
        batcher.events.feed.finish()
    }

    /// Records an inspection, so that closing the store ends it.
    func beginInspection(_ inspector: Inspector) throws {
        try inspections.withLock { inspections in
            guard inspections != nil else { throw QueueError(.stopped, "the queue is closed") }
            inspections?.append(inspector)
        }
    }

    func endInspection(_ inspector: Inspector) {
        inspections.withLock { $0?.removeAll { $0 === inspector } }
    }

    /// Runs `body` in a transaction, which other writes may share. After the commit, posts the changed lanes and
    /// removes the spool files that are no longer needed.
    ///
    /// If the wall clock was set, the stored dates are adjusted before, so that `body` sees dates of one clock. Another
    /// transaction does that, because this one may be refused.
    func write<Value: Sendable>(
        rows: Int,
        bytes: Int64 = 0,
        durability: Durability = .full,
        isAtomic: Bool = false,
        _ body: @escaping @Sendable (inout StoreTransaction) throws -> Value
    ) async throws -> Value {
        let offset = environment.clock.read().offset
        if environment.isStep(to: offset) {
            try await commit(CommitBatcher.Load(rows: 1)) { _ in }
            environment.followedOffset.replace(offset)
        }
        let load = CommitBatcher.Load(rows: rows, bytes: bytes, durability: durability, isAtomic: isAtomic)
        return try await commit(load, body)
    }

    private func commit<Value: Sendable>(
        _ load: CommitBatcher.Load,
        _ body: @escaping @Sendable (inout StoreTransaction) throws -> Value
    ) async throws -> Value {
        let (value, effects) = try await batcher.write(load) { [environment] database in
            var transaction = StoreTransaction(database, environment)
            return try environment.events.operation(at: transaction.now.date) {
                // The clock may also have been set while this transaction waited.
                if environment.isStep(to: transaction.clock.offset) { try transaction.followClock() }
                let value = try body(&transaction)
                return (value, try transaction.effects())
            }
        }
        changes.post(effects.lanes)
        completions.post(effects.completed)
        // If the commit was not synced, a power failure may bring the rows back, so their files must stay. The next
        // sweep of the spool removes files without a row.
        if load.durability == .full, !effects.freed.isEmpty {
            CrashPoint.concluded.reached()
            await spool.remove(effects.freed)
        }
        return value
    }

    /// Runs `body` on the committed state. It waits for writes in progress only while ``LogTruncation`` has paused the
    /// reader.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (StoreTransaction) throws -> Value
    ) async throws -> Value {
        try batcher.checkReadable()
        let body: @Sendable (Database) throws -> Value = { [environment] in
            try body(StoreTransaction($0, environment))
        }
        do {
            if let value = try await reader.read(body) { return value }
            return try await batcher.read(body)
        } catch {
            throw batcher.readFailure(error)
        }
    }
}
