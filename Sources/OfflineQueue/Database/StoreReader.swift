internal import Dispatch
internal import GRDB
internal import NetwatchEventLoop

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
