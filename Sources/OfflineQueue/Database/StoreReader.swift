internal import Dispatch
internal import GRDB
internal import Synchronization

/// The read-only connection for listings. In WAL mode readers and the writer do not block each other: a listing does
/// not delay a commit, and is answered while a large edit is being written.
///
/// Each call sees one consistent state of the database, with everything that was committed before the call.
final class StoreReader: Sendable {
    private struct State {
        /// The reads in progress, and those that wait for them.
        var reads = 0
        var isPaused = false
    }

    private let database: DatabaseQueue
    private let state = Mutex(State())

    /// Opens the connection. Blocks. The database must already be open for writing, and must stay open longer than this
    /// connection.
    init(database path: String) throws {
        database = try DatabaseQueue(path: path, configuration: QueueDatabase.readingConfiguration)
    }

    /// - Returns: `nil` while the reader is paused.
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

    /// Lets no read begin until ``resume()``.
    ///
    /// - Returns: Whether no read is in progress.
    func pause() -> Bool {
        state.withLock { state in
            state.isPaused = true
            return state.reads == 0
        }
    }

    func resume() { state.withLock { $0.isPaused = false } }

    /// Blocks until the reads in progress have ended.
    func close() { try? database.close() }
}
