internal import GRDB
internal import GRDBSQLite

/// Truncates SQLite's write-ahead log when continuous reads let it grow.
///
/// SQLite's automatic checkpoint stops at the snapshot of the oldest read, and SQLite starts the log again from its
/// beginning only when no read uses it. With one read after another, the log would grow without limit.
struct LogTruncation: Sendable {
    /// The size in bytes from which the log is truncated: 16 MiB.
    static let threshold = 2 * CommitBatcher.longestLog

    /// The path of the log.
    let log: String
    let reader: StoreReader
    private var next = Self.threshold

    init(of log: String, reader: StoreReader) {
        self.log = log
        self.reader = reader
    }

    /// Truncates the log if it is long and no read is in progress. If a read is in progress, this pauses the reader:
    /// until a later call has truncated the log, new reads run between the commits. Called after each commit, on the
    /// writer's queue.
    mutating func run(on database: Database) {
        let size = FileSystem.size(of: log)
        guard size > next, reader.pause() else { return }
        defer { reader.resume() }
        // Another process that reads the database may prevent the truncation. The next attempt then waits until the log
        // has grown by 8 MiB.
        next = Self.truncate(database) ? Self.threshold : size + CommitBatcher.longestLog
    }

    /// Returns whether the log was truncated. An error loses no data: the commits stay in the log.
    private static func truncate(_ database: Database) -> Bool {
        // Without this, the next commit would wait up to 10 s for a process that reads the database.
        sqlite3_busy_timeout(database.sqliteConnection, 0)
        defer { sqlite3_busy_timeout(database.sqliteConnection, CInt(QueueDatabase.busySeconds * 1000)) }
        return (try? database.checkpoint(.truncate)) != nil
    }
}
