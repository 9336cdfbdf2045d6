internal import Dispatch
internal import Foundation
internal import GRDB
internal import Glibc
internal import NetwatchEventLoop

/// Opens the only connection that writes to the database.
enum QueueDatabase {
    /// Opens and checks the database on a thread that may block.
    ///
    /// - Returns: The connection, and the content of the log that an earlier owner left; `nil` when there was none.
    static func open(in directory: QueueDirectory) async throws -> (DatabaseQueue, LogReport?) {
        try await DispatchQueue.global().run {
            do {
                return try openBlocking(directory)
            } catch {
                // Releases the lock now. The last reference may go only after the caller has tried again.
                directory.release()
                throw error
            }
        }
    }

    private static func openBlocking(_ directory: QueueDirectory) throws -> (DatabaseQueue, LogReport?) {
        let path = directory.databasePath
        do {
            if let note = directory.damage.text {
                throw StoreFault.damaged("\(note), when the queue ran last")
            }
            // Reads the log first, because recovery silently drops what it cannot use.
            let log = try leftoverLog(of: path)
            try checkReadOnly(path)
            let database = try DatabaseQueue(path: path, configuration: configuration)
            try database.writeWithoutTransaction(configure)
            try QueueSchema.migrator.migrate(database)
            try database.writeWithoutTransaction(checkSettings)
            // Empties the log. The next log has new salts, so dropped frames that remained after its frames would look
            // like damage.
            if log?.note != nil {
                try database.writeWithoutTransaction {
                    try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)")
                }
            }
            return (database, log)
        } catch {
            throw StoreFault(error).error(path: path)
        }
    }

    /// Reads the log that an earlier owner left. This process must have no connection open: closing any descriptor of a
    /// database file releases the locks that SQLite holds on the file.
    ///
    /// - Throws: ``StoreFault`` when the log cannot be read, or does not belong to this database.
    static func leftoverLog(of path: String) throws(StoreFault) -> LogReport? {
        let report: LogReport?
        let header: [UInt8]
        do throws(SystemError) {
            report = try LogFile(of: path).report()
            header = try firstBytes(of: path)
        } catch {
            throw .passing("\(error)")
        }
        guard let report else { return nil }
        if let mismatch = report.mismatch(with: header) { throw .damaged(mismatch) }
        return report
    }

    private static func firstBytes(of path: String) throws(SystemError) -> [UInt8] {
        let file = try FileDescriptor.opening(path)
        let descriptor = file.rawValue
        var bytes = [UInt8](repeating: 0, count: 18)
        let count = try systemCall("read \(path)") { pread(descriptor, &bytes, bytes.count, 0) }
        return Array(bytes.prefix(count))
    }

    /// Checks the database through a read-only connection. Opening it for writing changes the journal mode at once, and
    /// a foreign file must not change by a single byte.
    static func checkReadOnly(_ path: String) throws {
        guard FileSystem.size(of: path) > 0 else { return try checkNew(path) }
        do {
            let database = try DatabaseQueue(path: path, configuration: readingConfiguration)
            defer { try? database.close() }
            try database.writeWithoutTransaction(checkOwnership)
        } catch let error as DatabaseError
            where [.SQLITE_READONLY, .SQLITE_CANTOPEN].contains(error.resultCode)
        {
            // A process stopped while it created the database. It must be written to before it can be read, which
            // opening it does next.
        }
    }

    /// Throws if the database file is empty, but other files of a queue exist. SQLite takes an empty file for a new
    /// database and removes the log, and the loss of the requests would go unnoticed.
    private static func checkNew(_ path: String) throws {
        let bodies = "\((path as NSString).deletingLastPathComponent)/spool"
        let isNew =
            FileSystem.size(of: "\(path)-wal") == 0
            && !((try? FileManager.default.contentsOfDirectory(atPath: bodies)) ?? []).contains(
                where: SpoolName.isComplete
            )
        guard isNew else {
            throw StoreFault.damaged("the database file is empty, but its log or its spool is not")
        }
    }

    /// How long a connection waits for a lock of another process. Seconds.
    static let busySeconds = 10.0

    /// The configuration of a connection that neither writes nor checkpoints. Before SQLite 3.51.3, two connections
    /// that do may damage a database.
    static var readingConfiguration: Configuration {
        var configuration = Configuration()
        configuration.label = "netwatch.queue.reader"
        configuration.readonly = true
        configuration.busyMode = .timeout(busySeconds)
        configuration.prepareDatabase { database in
            try database.execute(
                sql: """
                    PRAGMA query_only = ON; PRAGMA wal_autocheckpoint = 0; PRAGMA mmap_size = 0;
                    PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY
                    """
            )
        }
        return configuration
    }

    private static var configuration: Configuration {
        var configuration = Configuration()
        configuration.label = "netwatch.queue"
        configuration.journalMode = .wal
        configuration.busyMode = .timeout(busySeconds)
        configuration.foreignKeysEnabled = true
        return configuration
    }

    private static func configure(_ database: Database) throws {
        try checkOwnership(database)
        // SQLite then detects a damaged page as soon as it reads it, at the cost of a check of its cells.
        try database.execute(sql: "PRAGMA cell_size_check = ON")
        // Set before the migrator creates its own table in a separate commit. A process that dies between the two must
        // leave a database that is recognized.
        try database.execute(sql: "PRAGMA application_id = \(QueueSchema.applicationID)")
        // GRDB sets NORMAL for WAL databases after its prepare hook has run, so FULL is set here, after the
        // connection is open.
        try syncFully(database)
        try database.execute(sql: "PRAGMA mmap_size = 0; PRAGMA journal_size_limit = \(64 << 20)")
        // SQLite keeps a journal for the rollback of a statement with triggers. A journal that may go to a file takes
        // 64 KiB per statement; in memory it takes only what the statement changes.
        try database.execute(sql: "PRAGMA temp_store = MEMORY")
        // Debian's SQLite overwrites every page that it frees. So the end of a request would write as many bytes again
        // as its body has, to a disk that may be full of bodies.
        try database.execute(sql: "PRAGMA secure_delete = FAST")
    }

    static func syncFully(_ database: Database) throws {
        try database.execute(sql: "PRAGMA synchronous = FULL")
    }

    /// Checks the settings. Otherwise a setting without effect would be noticed only after the next power failure.
    private static func checkSettings(_ database: Database) throws {
        try expect(2, from: "synchronous", database)
        try expect("wal", from: "journal_mode", database)
        try expect(1, from: "foreign_keys", database)
        try checkContent(database)
    }

    /// Checks the tables that every start reads, because their values affect the whole queue. There are too many
    /// requests to check them here.
    private static func checkContent(_ database: Database) throws {
        let meta = """
            SELECT count(*) FROM meta WHERE typeof(owner_epoch + boot + clock_offset + requests + bytes + history_bytes
            + is_paused) = 'integer' AND typeof(boot_id) = 'text'
            """
        guard try Int.fetchOne(database, sql: meta) == 1 else {
            throw StoreFault.damaged("the table `meta` contains invalid values")
        }
        let lanes = """
            SELECT count(*) FROM lane WHERE mode NOT IN ('parallel', 'fifo') OR typeof(scheme || host || label) <> 'text'
            OR typeof(id + port + is_paused + requests + bytes) <> 'integer'
            OR typeof(not_before) NOT IN ('integer', 'null')
            """
        guard try Int.fetchOne(database, sql: lanes) == 0 else {
            throw StoreFault.damaged("the table `lane` contains invalid values")
        }
    }

    private static func checkOwnership(_ database: Database) throws {
        let found = try Int.fetchOne(database, sql: "PRAGMA application_id") ?? 0
        let isEmpty = try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_schema") == 0
        guard found == QueueSchema.applicationID || (found == 0 && isEmpty) else {
            throw StoreFault.foreign("it belongs to another program")
        }
        guard try !QueueSchema.migrator.hasBeenSuperseded(database) else {
            throw StoreFault.foreign("it was written by a newer netwatch")
        }
    }

    private static func expect<Value: DatabaseValueConvertible & Equatable>(
        _ expected: Value,
        from pragma: String,
        _ database: Database
    ) throws {
        let found = try Value.fetchOne(database, sql: "PRAGMA \(pragma)")
        guard found == expected else {
            throw StoreFault.foreign(
                "\(pragma) is \(found.map { "\($0)" } ?? "nothing") instead of \(expected)"
            )
        }
    }
}
