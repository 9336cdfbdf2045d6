internal import GRDB
internal import GRDBSQLite

/// Makes the statements of a connection end with `SQLITE_INTERRUPT` after a time. Used only by the thread that uses the
/// connection.
final class StatementTimeLimit {
    /// The number of steps of a statement after which SQLite calls the handler.
    private static let steps: CInt = 100

    private let database: Database
    private let deadline: ContinuousClock.Instant

    /// Begins the time. ``end()`` must be called before the last reference is released.
    init(of database: Database, _ limit: Duration) {
        self.database = database
        deadline = .now + limit
        let handler: @convention(c) (UnsafeMutableRawPointer?) -> CInt = { context in
            context.map { Unmanaged<StatementTimeLimit>.fromOpaque($0).takeUnretainedValue().isOver ? 1 : 0 }
                ?? 0
        }
        sqlite3_progress_handler(
            database.sqliteConnection,
            Self.steps,
            handler,
            Unmanaged.passUnretained(self).toOpaque()
        )
    }

    private var isOver: Bool { ContinuousClock.now >= deadline }

    /// Removes the limit.
    func end() { sqlite3_progress_handler(database.sqliteConnection, 0, nil, nil) }
}
