internal import Dispatch
internal import Foundation
internal import GRDB
internal import Glibc
internal import NetwatchEventLoop

/// Opens the one connection that writes.
enum QueueDatabase {
    /// Opens and checks the database on a thread that may block.
    ///
    /// - Returns: The connection, and what was in the log that an earlier owner left; `nil` when there was none.
    static func open(in directory: QueueDirectory) async throws -> (DatabaseQueue, LogReport?) {
        try await DispatchQueue.global().run {
            do {
                return try openBlocking(directory)
            } catch {
                // Not when the last reference goes, which may be after the caller has tried again.
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
            // Recovery drops what it cannot use, and tells nobody.
            let log = try logLeft(beside: path)
            try look(at: path)
            let database = try DatabaseQueue(path: path, configuration: configuration)
            try database.writeWithoutTransaction(configure)
            try QueueSchema.migrator.migrate(database)
            try database.writeWithoutTransaction(checkSettings)
            // The next log begins with new salts. Behind new frames the dropped ones would look like damage.
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

    /// What an earlier owner left in the log. No connection of this process may be open: closing a file of a database
    /// gives back the locks that SQLite has on it.
    ///
    /// - Throws: ``StoreFault`` when the log cannot be read, or is not this database's.
    static func logLeft(beside path: String) throws(StoreFault) -> LogReport? {
        let report: LogReport?
        let header: [UInt8]
        do throws(SystemError) {
            report = try LogFile(of: path).report()
            header = try firstBytes(of: path)
        } catch {
            throw .passing("\(error)")
        }
        guard let report else { return nil }
        if let foreignness = report.foreignness(to: header) { throw .damaged(foreignness) }
        return report
    }

    private static func firstBytes(of path: String) throws(SystemError) -> [UInt8] {
        let file = try FileDescriptor.opening(path)
        let descriptor = file.rawValue
        var bytes = [UInt8](repeating: 0, count: 18)
        let count = try systemCall("read \(path)") { pread(descriptor, &bytes, bytes.count, 0) }
        return Array(bytes.prefix(count))
    }

    /// Opening for writing changes the journal mode at once, and what is not ours has to stay as it is to the byte.
    static func look(at path: String) throws {
        guard FileSystem.size(of: path) > 0 else { return try checkNew(path) }
        do {
            let database = try DatabaseQueue(path: path, configuration: readingConfiguration)
            defer { try? database.close() }
            try database.writeWithoutTransaction(checkOwnership)
        } catch let error as DatabaseError
            where [.SQLITE_READONLY, .SQLITE_CANTOPEN].contains(error.resultCode)
        {
            // It ended while it was being made, and somebody has to write first: whoever opens it next.
        }
    }

    /// SQLite takes an empty file for a new database, removes the log, and nobody would miss the bodies.
    private static func checkNew(_ path: String) throws {
        let bodies = "\((path as NSString).deletingLastPathComponent)/spool"
        let isNew =
            FileSystem.size(of: "\(path)-wal") == 0
            && !((try? FileManager.default.contentsOfDirectory(atPath: bodies)) ?? []).contains(
                where: SpoolName.isComplete
            )
        guard isNew else { throw StoreFault.damaged("its file is empty, and what belongs to it is not") }
    }

    /// Of a connection that neither writes nor checkpoints: two that do may damage a database before SQLite 3.51.3.
    static var readingConfiguration: Configuration {
        var configuration = Configuration()
        configuration.label = "netwatch.queue.reader"
        configuration.readonly = true
        configuration.busyMode = .timeout(10)
        configuration.prepareDatabase { database in
            try database.execute(
                sql: "PRAGMA query_only = ON; PRAGMA wal_autocheckpoint = 0; PRAGMA mmap_size = 0"
            )
        }
        return configuration
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
        // A damaged page is then noticed as soon as it is read, at the cost of a look at its cells.
        try database.execute(sql: "PRAGMA cell_size_check = ON")
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
        // Debian's SQLite overwrites every page that it frees: the end of a request would write as much as its body has
        // once more, to a disk that may be full of bodies.
        try database.execute(sql: "PRAGMA secure_delete = FAST")
    }

    static func syncFully(_ database: Database) throws {
        try database.execute(sql: "PRAGMA synchronous = FULL")
    }

    /// A setting that did not take would be noticed after the next power cut only.
    private static func checkSettings(_ database: Database) throws {
        try expect(2, from: "synchronous", database)
        try expect("wal", from: "journal_mode", database)
        try expect(1, from: "foreign_keys", database)
        try checkContent(database)
    }

    /// What is read at every start, and there once only: of garbage in it nothing good can come. Requests are too
    /// many to be looked at here.
    private static func checkContent(_ database: Database) throws {
        let meta = """
            SELECT count(*) FROM meta WHERE typeof(owner_epoch + boot + clock_offset + requests + bytes + history_bytes
            + is_paused) = 'integer' AND typeof(boot_id) = 'text'
            """
        guard try Int.fetchOne(database, sql: meta) == 1 else {
            throw StoreFault.damaged("its table meta is")
        }
        let lanes = """
            SELECT count(*) FROM lane WHERE mode NOT IN ('parallel', 'fifo') OR typeof(scheme || host || label) <> 'text'
            OR typeof(id + port + is_paused + requests + bytes) <> 'integer'
            OR typeof(not_before) NOT IN ('integer', 'null')
            """
        guard try Int.fetchOne(database, sql: lanes) == 0 else {
            throw StoreFault.damaged("its table lane is")
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
