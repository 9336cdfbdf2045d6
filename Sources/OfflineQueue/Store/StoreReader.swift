internal import Dispatch
internal import GRDB

/// The connection by which the queue is looked at. In WAL mode readers and the writer do not wait for each other: a
/// listing holds no commit up, and is answered while one large edit is being written.
///
/// It sees what was committed before the call. A call sees one state of the database.
final class StoreReader: Sendable {
    private let database: DatabaseQueue

    /// Blocks. The database has to be open for writing already, and stays so for longer.
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

    /// Blocks until the reads under way have ended.
    func close() { try? database.close() }
}
