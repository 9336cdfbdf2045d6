internal import GRDB
internal import Synchronization

// The operations that callers submit, and the batches that share a commit.

extension CommitBatcher {
    /// The size and the requirements of a write.
    struct Load: Sendable {
        let rows: Int
        var bytes: Int64 = 0
        var durability = Durability.full
        /// Whether the write may be refused after it has begun to write. It then runs in a savepoint and is rolled back
        /// alone.
        var isAtomic = false
    }

    struct Operation: Sendable {
        let load: Load
        let run: @Sendable (Database) throws -> Void
        let finish: @Sendable ((any Error)?) -> Void
    }

    /// The operations of one transaction.
    struct Batch {
        private static let maximumBytes: Int64 = 4 << 20

        var operations: [Operation] = []
        private var rows = 0
        private var bytes: Int64 = 0

        /// Reserves room for the load. Returns `false` when it does not fit; the first load always fits.
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

/// Carries a result from the transaction to the end of the commit. Both run on the database's queue.
final class ResultCell<Value: Sendable>: Sendable {
    private let value = Mutex<Result<Value, any Error>?>(nil)

    func store(_ result: Result<Value, any Error>) {
        value.withLock { $0 = result }
    }

    func result(unless failure: (any Error)?) -> Result<Value, any Error> {
        if let failure { return .failure(failure) }
        return value.withLock { $0! }
    }
}
