internal import Dispatch
internal import GRDB
internal import NetwatchEventLoop

/// Opens the one connection that writes.
enum QueueDatabase {
    /// Opens and checks the database on a thread that may block.
    static func open(in directory: QueueDirectory) async throws -> DatabaseQueue {
        try await offPool {
            do {
                return try openBlocking(directory)
            } catch {
                // Not when the last reference goes, which may be after the caller has tried again.
                directory.release()
                throw error
            }
        }
    }

    /// Runs blocking work on a dispatch thread.
    static func offPool<Value: Sendable>(
        _ body: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(with: Result(catching: body)) }
        }
    }

    private static func openBlocking(_ directory: QueueDirectory) throws -> DatabaseQueue {
        do {
            let database = try DatabaseQueue(path: directory.databasePath, configuration: configuration)
            try database.writeWithoutTransaction(configure)
            try QueueSchema.migrator.migrate(database)
            try database.writeWithoutTransaction(checkSettings)
            return database
        } catch let error as QueueError {
            throw QueueError(error.code, error.message, path: error.path ?? directory.databasePath)
        } catch {
            throw unusable("\(error)", directory.databasePath)
        }
    }

    private static var configuration: Configuration {
        var configuration = Configuration()
        configuration.label = "netwatch.queue"
        configuration.journalMode = .wal
        configuration.busyMode = .timeout(10)
        configuration.foreignKeysEnabled = true
        return configuration
    }

    private static func configure(_ database: Database) throws {
        try checkOwnership(database)
        // Before the migrator's table, which has a commit of its own: whoever dies between the two must find a
        // database that is recognized.
        try database.execute(sql: "PRAGMA application_id = \(QueueSchema.applicationID)")
        // GRDB sets NORMAL for WAL databases after its prepare hook has run, so FULL is set here, after the
        // connection is open.
        try syncFully(database)
        try database.execute(sql: "PRAGMA mmap_size = 0; PRAGMA journal_size_limit = \(64 << 20)")
        // Statements with triggers remember how to undo themselves. On its way to a file that takes 64 KiB for each,
        // in memory what they change.
        try database.execute(sql: "PRAGMA temp_store = MEMORY")
    }

    static func syncFully(_ database: Database) throws {
        try database.execute(sql: "PRAGMA synchronous = FULL")
    }

    /// A setting that did not take would be noticed after the next power cut only.
    private static func checkSettings(_ database: Database) throws {
        try expect(2, from: "synchronous", database)
        try expect("wal", from: "journal_mode", database)
        try expect(1, from: "foreign_keys", database)
    }

    private static func checkOwnership(_ database: Database) throws {
        let found = try Int.fetchOne(database, sql: "PRAGMA application_id") ?? 0
        let isEmpty = try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_schema") == 0
        guard found == QueueSchema.applicationID || (found == 0 && isEmpty) else {
            throw unusable("it belongs to another program", nil)
        }
        guard try !QueueSchema.migrator.hasBeenSuperseded(database) else {
            throw unusable("it was written by a newer netwatch", nil)
        }
    }

    private static func expect<Value: DatabaseValueConvertible & Equatable>(
        _ expected: Value,
        from pragma: String,
        _ database: Database
    ) throws {
        let found = try Value.fetchOne(database, sql: "PRAGMA \(pragma)")
        guard found == expected else {
            throw unusable("\(pragma) is \(found.map { "\($0)" } ?? "nothing") instead of \(expected)", nil)
        }
    }

    private static func unusable(_ reason: String, _ path: String?) -> QueueError {
        QueueError(.storeUnusable, "the queue's database cannot be used: \(reason)", path: path)
    }
}
