internal import Dispatch
internal import Foundation
internal import GRDB
internal import Glibc
internal import NetwatchEventLoop

/// Opens the connection that writes to the database. There is only one.
enum QueueDatabase {
    /// Opens and checks the database on a thread that may block.
    ///
    /// - Returns: The connection, and the log that an earlier owner left; `nil` if there was none.
    static func open(in directory: QueueDirectory) async throws -> (DatabaseQueue, LogReport?) {
        try await DispatchQueue.global().run {
            do {
                return try openBlocking(directory)
            } catch {
                // Releases the lock now. The last reference to the directory may live until after the caller's next
                // attempt, which would then find the directory locked.
                directory.release()
                throw error
            }
        }
    }

    private static func openBlocking(_ directory: QueueDirectory) throws -> (DatabaseQueue, LogReport?) {
        let path = directory.databasePath
        do {
            if let note = directory.damage.text {
                throw StoreFault.damaged("\(note), found when the queue last ran")
            }
            // Reads the log before SQLite does, because SQLite's recovery silently drops commits that it cannot use.
            let log = try leftoverLog(of: path)
            try checkReadOnly(path)
            let database = try DatabaseQueue(path: path, configuration: configuration)
            try database.writeWithoutTransaction(configure)
            try QueueSchema.migrator.migrate(database)
            try database.writeWithoutTransaction(checkSettings)
            // Recovery has dropped commits, so the log is truncated. Otherwise their frames could remain behind new
            // ones, and look like damage after the next crash.
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

    /// Reads the log that an earlier owner left. This process must have no open connection to the database. Closing any
    /// descriptor of the file would release the locks that SQLite holds on it.
    ///
    /// - Throws: ``StoreFault`` if the log cannot be read, or does not belong to this database.
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

    /// Checks through a read-only connection that the file is a queue's database. Opening it for writing would change
    /// the journal mode immediately, and a file of another program must not be changed.
    static func checkReadOnly(_ path: String) throws {
        guard FileSystem.size(of: path) > 0 else { return try checkNew(path) }
        do {
            let database = try DatabaseQueue(path: path, configuration: readingConfiguration)
            defer { try? database.close() }
            try database.writeWithoutTransaction(checkOwnership)
        } catch let error as DatabaseError
            where [.SQLITE_READONLY, .SQLITE_CANTOPEN].contains(error.resultCode)
        {
            // An earlier process stopped while it created the database. The next step opens the file for writing, which
            // completes the creation.
        }
    }

    /// Throws if the database file is empty although its log or a body in the spool exists. SQLite would treat the
    /// empty file as a new database and remove the log, so the loss of the requests would go unnoticed.
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

    /// How long a connection waits for a lock of another process, in seconds.
    static let busySeconds = 10.0

    /// The configuration of a connection that neither writes nor checkpoints. In versions of SQLite before 3.51.3, a
    /// second connection that writes or checkpoints may damage the database.
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
        // Makes SQLite check the cells of each page that it reads, so that it detects a damaged page immediately.
        try database.execute(sql: "PRAGMA cell_size_check = ON")
        // Set before the migrator creates its own table, which is a separate commit. If the process dies after that
        // commit, the next start must recognize the database.
        try database.execute(sql: "PRAGMA application_id = \(QueueSchema.applicationID)")
        // FULL must be set after the connection is open. GRDB sets NORMAL for WAL databases after it has called
        // `prepareDatabase`.
        try syncFully(database)
        try database.execute(
            sql: "PRAGMA mmap_size = 0; PRAGMA journal_size_limit = \(CommitBatcher.longestLog)"
        )
        // SQLite keeps a journal to roll back a statement with triggers. If this journal may be written to a file, it
        // takes 64 KiB for each statement. In memory it takes only as much as the statement changes.
        try database.execute(sql: "PRAGMA temp_store = MEMORY")
        // Debian's SQLite overwrites every freed page by default. Deleting a request would then write as many bytes as
        // its body has, possibly to a full disk.
        try database.execute(sql: "PRAGMA secure_delete = FAST")
    }

    /// Makes SQLite sync the log in every commit.
    static func syncFully(_ database: Database) throws {
        try database.execute(sql: "PRAGMA synchronous = FULL")
    }

    /// Reads the settings back. A setting that had no effect would otherwise be noticed only after a power failure.
    private static func checkSettings(_ database: Database) throws {
        try expect(2, from: "synchronous", database)
        try expect("wal", from: "journal_mode", database)
        try expect(1, from: "foreign_keys", database)
        try checkContent(database)
    }

    /// Checks the tables `meta` and `lane`, because invalid values in them affect the whole queue. The requests are not
    /// checked here, because there may be too many.
    private static func checkContent(_ database: Database) throws {
        // Sums with larger times could overflow.
        let farthest = Timestamp.farthest
        let meta = """
            SELECT count(*) FROM meta WHERE typeof(owner_epoch + boot + clock_offset + requests + bytes + history_bytes
            + is_paused) = 'integer' AND typeof(boot_id) = 'text' AND typeof(trusted_offset) IN ('integer', 'null')
            AND clock_offset BETWEEN -\(farthest) AND \(farthest)
            AND ifnull(trusted_offset, 0) BETWEEN -\(farthest) AND \(farthest)
            """
        guard try Int.fetchOne(database, sql: meta) == 1 else {
            throw StoreFault.damaged("the table `meta` contains invalid values")
        }
        let lanes = """
            SELECT count(*) FROM lane WHERE mode NOT IN ('parallel', 'fifo') OR typeof(scheme || host || label) <> 'text'
            OR typeof(id + port + is_paused + pauses_new + requests + bytes + boot_not_before + closure) <> 'integer'
            OR typeof(not_before) NOT IN ('integer', 'null') OR typeof(lane_submitter) NOT IN ('integer', 'null')
            OR ifnull(lane_submitter, 0) NOT BETWEEN 0 AND \(UInt32.max)
            OR boot_not_before NOT BETWEEN -\(farthest) AND \(farthest) OR closure NOT BETWEEN 0 AND \(farthest)
            """
        guard try Int.fetchOne(database, sql: lanes) == 0 else {
            throw StoreFault.damaged("the table `lane` contains invalid values")
        }
    }

    /// Checks that the database is empty or belongs to a queue, and that no newer version has written it.
    private static func checkOwnership(_ database: Database) throws {
        let found = try Int.fetchOne(database, sql: "PRAGMA application_id") ?? 0
        let isEmpty = try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_schema") == 0
        guard found == QueueSchema.applicationID || (found == 0 && isEmpty) else {
            throw StoreFault.foreign("it belongs to another program")
        }
        guard try !QueueSchema.isOfDevelopmentVersion(database) else {
            throw StoreFault.foreign(
                "it was written by a development version; export the queue with that version (`netwatch queue export`), "
                    + "move the directory away, start this version, and import the export (`netwatch queue import`)"
            )
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

/// The read-only connection for listings. In WAL mode readers and the writer do not block each other. A listing
/// therefore does not delay a commit, and does not wait for a large edit that is being written.
///
/// Each read sees one consistent state of the database, which includes every commit that was finished before the read.
final class StoreReader: Sendable {
    private struct State {
        /// The number of reads that are in progress or waiting for the connection.
        var reads = 0
        var isPaused = false
    }

    private let database: DatabaseQueue
    private let state = Lock(State())

    /// Opens the connection. Blocks. The connection that writes must be opened before this one and closed after it.
    init(database path: String) throws {
        database = try DatabaseQueue(path: path, configuration: QueueDatabase.readingConfiguration)
    }

    /// Runs `body` with the connection.
    ///
    /// - Returns: The result of `body`. While the reader is paused, `body` is not called and the result is `nil`.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value? {
        guard begins() else { return nil }
        defer { state.withLock { $0.reads -= 1 } }
        return try await withCheckedThrowingContinuation { continuation in
            database.asyncRead { opened in
                continuation.resume(with: Result { try body(try opened.get()) })
            }
        }
    }

    private func begins() -> Bool {
        state.withLock { state in
            if !state.isPaused { state.reads += 1 }
            return !state.isPaused
        }
    }

    /// Refuses new reads until ``resume()`` is called.
    ///
    /// - Returns: Whether no read is in progress or waiting.
    func pause() -> Bool {
        state.withLock { state in
            state.isPaused = true
            return state.reads == 0
        }
    }

    /// Allows reads again.
    func resume() { state.withLock { $0.isPaused = false } }

    /// Closes the connection. Blocks until the reads in progress have ended.
    func close() { try? database.close() }
}
