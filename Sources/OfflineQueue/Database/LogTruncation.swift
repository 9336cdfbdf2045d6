internal import GRDB
internal import GRDBSQLite

/// Keeps SQLite's log short while the reading connection is in use.
///
/// The automatic checkpoint stops at the snapshot of the oldest read, and the log restarts only when no read uses it.
/// With one read after another it would grow for as long as they continue.
struct LogTruncation: Sendable {
    /// The size from which the log is truncated. Bytes.
    static let threshold = 2 * CommitBatcher.longestLog

    /// The path of the log.
    let log: String
    let reader: StoreReader
    private var next = Self.threshold

    init(of log: String, reader: StoreReader) {
        self.log = log
        self.reader = reader
    }

    /// Truncates a long log, or makes new reads wait for their turn between the commits until that is possible. Called
    /// after each commit, on the writer's queue.
    mutating func run(on database: Database) {
        let size = FileSystem.size(of: log)
        guard size > next, reader.pause() else { return }
        defer { reader.resume() }
        // Another process that reads the database may prevent it. Then the log may grow before the next attempt.
        next = Self.truncate(database) ? Self.threshold : size + CommitBatcher.longestLog
    }

    /// An error leaves everything in the log, as an error of the automatic checkpoint does.
    private static func truncate(_ database: Database) -> Bool {
        // A commit must not wait for another process here.
        sqlite3_busy_timeout(database.sqliteConnection, 0)
        defer { sqlite3_busy_timeout(database.sqliteConnection, CInt(QueueDatabase.busySeconds * 1000)) }
        return (try? database.checkpoint(.truncate)) != nil
    }
}
