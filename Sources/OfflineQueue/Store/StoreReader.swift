internal import Dispatch
internal import GRDB

/// The read-only connection for listings. In WAL mode readers and the writer do not block each other: a listing does
/// not delay a commit, and is answered while a large edit is being written.
///
/// Each call sees one consistent state of the database, with everything that was committed before the call.
final class StoreReader: Sendable {
    private let database: DatabaseQueue

    /// Opens the connection. Blocks. The database must already be open for writing, and must stay open longer than this
    /// connection.
    init(database path: String) throws {
        database = try DatabaseQueue(path: path, configuration: QueueDatabase.readingConfiguration)
    }

    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            database.asyncRead { opened in
                continuation.resume(with: Result { try body(try opened.get()) })
            }
        }
    }

    /// Blocks until the reads in progress have ended.
    func close() { try? database.close() }
}
