internal import GRDB
internal import GRDBSQLite

/// Truncates SQLite's write-ahead log when reads have let it grow.
///
/// SQLite's automatic checkpoint stops at the snapshot of the oldest read, and SQLite starts the log again from its
/// beginning only when no read uses it. With one read after another, the log would grow without limit. When SQLite
/// starts the log again, it shortens the file (`journal_size_limit`), but only the next commits do that.
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

    /// Whether the log is long enough to be truncated.
    var isLong: Bool { FileSystem.size(of: log) > Self.threshold }

    /// Truncates the log if it is long and no read is in progress. If a read is in progress, this pauses the reader:
    /// until the log is short again, new reads run between the commits. Called on the writer's queue, after each commit
    /// and once a second.
    ///
    /// - Parameter isRepeated: Whether to try again although the log has not grown since the last attempt.
    mutating func run(on database: Database, isRepeated: Bool = false) {
        let size = FileSystem.size(of: log)
        guard size > Self.threshold else { return reset() }
        guard isRepeated || size > next, reader.pause() else { return }
        defer { reader.resume() }
        // Another process that reads the database may prevent the truncation. The next attempt then waits until the log
        // has grown by 8 MiB.
        next = Self.truncate(database) ? Self.threshold : size + CommitBatcher.longestLog
    }

    /// Allows reads again after SQLite has shortened the log.
    private mutating func reset() {
        next = Self.threshold
        reader.resume()
    }

    /// Returns whether the log was truncated. An error loses no data: the commits stay in the log.
    private static func truncate(_ database: Database) -> Bool {
        // Without this, the next commit would wait up to 10 s for a process that reads the database.
        sqlite3_busy_timeout(database.sqliteConnection, 0)
        defer { sqlite3_busy_timeout(database.sqliteConnection, CInt(QueueDatabase.busySeconds * 1000)) }
        return (try? database.checkpoint(.truncate)) != nil
    }
}
