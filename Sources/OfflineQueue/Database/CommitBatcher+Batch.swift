internal import GRDB
internal import NetwatchEventLoop

// The write operations that callers submit, and the batches in which they are committed.

extension CommitBatcher {
    /// The size of a write operation, and how it must be executed and synced.
    struct Load: Sendable {
        let rows: Int
        var bytes: Int64 = 0
        var durability = Durability.full
        /// Whether the operation may throw a ``QueueError`` after it has begun to write. It then runs in a savepoint,
        /// so that only its own changes are rolled back.
        var isAtomic = false
    }

    /// A write operation. `run` executes its statements within the transaction. `finish` reports the result to the
    /// caller after the commit, or the error if the commit failed.
    struct Operation: Sendable {
        let load: Load
        let run: @Sendable (Database) throws -> Void
        let finish: @Sendable ((any Error)?) -> Void
    }

    /// The operations that share one transaction: at most 512 rows and 4 MiB, unless a single operation is larger.
    struct Batch {
        private static let maximumBytes: Int64 = 4 << 20

        var operations: [Operation] = []
        private var rows = 0
        private var bytes: Int64 = 0

        /// Adds the load to the batch's size. Returns `false` without adding it if it does not fit. The first load
        /// always fits.
        mutating func admits(_ load: Load) -> Bool {
            guard
                rows == 0
                    || (rows + load.rows <= CommitBatcher.maximumRows
                        && bytes + load.bytes <= Self.maximumBytes)
            else {
                return false
            }
            rows += load.rows
            bytes += load.bytes
            return true
        }
    }
}

/// The result of an operation, kept from the transaction until the end of the commit.
final class ResultCell<Value: Sendable>: Sendable {
    private let value = Lock<Result<Value, any Error>?>(nil)

    func store(_ result: Result<Value, any Error>) {
        value.withLock { $0 = result }
    }

    /// Returns the stored result, or the error if the commit failed.
    func result(unless failure: (any Error)?) -> Result<Value, any Error> {
        if let failure { return .failure(failure) }
        return value.withLock { $0! }
    }
}
