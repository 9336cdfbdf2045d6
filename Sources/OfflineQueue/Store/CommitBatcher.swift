internal import Dispatch
internal import GRDB
internal import NetwatchEventLoop
internal import Synchronization

/// Gives everything that waits to be written one transaction and thus one `fsync(2)`.
///
/// There is no artificial delay: while one commit is being synced, the next batch gathers, and whoever comes while
/// that is being written joins it. A waiter is told once its transaction is durable. After an error nothing is
/// written any more: SQLite itself would go on as if nothing had happened, and take a second `fsync(2)` of lost pages
/// for a good one.
final class CommitBatcher: Sendable {
    /// What a write brings along.
    struct Load: Sendable {
        let rows: Int
        var bytes: Int64 = 0
        var durability = Durability.full
        /// Whether it may be refused after it began to write. Then it is undone alone.
        var isAtomic = false
    }

    private struct Operation: Sendable {
        let load: Load
        let run: @Sendable (Database) throws -> Void
        let finish: @Sendable ((any Error)?) -> Void
    }

    private struct State {
        var waiting: [Operation] = []
        var isScheduled = false
        var refusal: QueueError?
        var commits = 0
        var location: StoreLocation?
    }

    /// How many rows one transaction writes for several callers.
    static let mostRows = 512

    /// What one transaction holds.
    private struct Batch {
        private static let maximumBytes: Int64 = 4 << 20

        var operations: [Operation] = []
        private var rows = 0
        private var bytes: Int64 = 0

        /// Whether there is room, which is taken then. There is for the first, whatever it brings.
        mutating func admits(_ load: Load) -> Bool {
            guard
                rows == 0
                    || (rows + load.rows <= CommitBatcher.mostRows && bytes + load.bytes <= Self.maximumBytes)
            else {
                return false
            }
            rows += load.rows
            bytes += load.bytes
            return true
        }
    }

    /// How long SQLite's log becomes, about: 1000 pages, after which it is copied to the database
    /// (`PRAGMA wal_autocheckpoint`), and the batch that reached them.
    static let longestLog: Int64 = 8 << 20

    private let database: DatabaseQueue
    private let directory: QueueDirectory
    private let state = Mutex(State())

    init(database: DatabaseQueue, directory: QueueDirectory) {
        ForkedChild.watch()
        self.database = database
        self.directory = directory
    }

    /// How many transactions were committed.
    var commits: Int { state.withLock { $0.commits } }

    /// Runs `body` in a transaction, maybe with others', and returns after the commit. A ``QueueError`` that it
    /// throws concerns it alone, and it has to throw before it writes, unless the load says that it is atomic.
    func write<Value: Sendable>(
        _ load: Load,
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            let cell = ResultCell<Value>()
            submit(
                Operation(
                    load: load,
                    run: { database in
                        do {
                            cell.store(.success(try body(database)))
                        } catch let refusal as QueueError {
                            cell.store(.failure(refusal))
                            throw refusal
                        }
                    },
                    finish: { continuation.resume(with: cell.result(unless: $0)) }
                )
            )
        }
    }

    /// Runs `body` between the commits.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        try checkReadable()
        return try await withCheckedThrowingContinuation { continuation in
            database.asyncWriteWithoutTransaction { database in
                continuation.resume(with: Result { try body(database) }.mapError(self.readFailure))
            }
        }
    }

    /// - Throws: ``QueueError`` once the store is closed, and in a child of fork(2).
    func checkReadable() throws {
        if let foreign = Self.foreignProcess { throw foreign }
        if let refusal = state.withLock({ $0.refusal }), refusal.code == .stopped { throw refusal }
    }

    /// Runs `body` between the commits and waits for it, which nothing on the cooperative pool may.
    func readBlocking<Value>(_ body: (Database) throws -> Value) throws -> Value {
        try database.writeWithoutTransaction(body)
    }

    /// From now on no commit counts unless every file is at its place after it.
    func watch(_ location: StoreLocation) {
        state.withLock { $0.location = location }
    }

    /// Ends the store when one of its files is not at its place any more. Blocks.
    ///
    /// - Throws: ``QueueError``: `storeReplaced`.
    func checkLocation() throws(QueueError) {
        guard let difference = state.withLock({ $0.location })?.difference(), isWatching else { return }
        refuse(with: difference)
        throw difference
    }

    /// Whether the files have to be at their places. SQLite removes the log itself when the database is closed.
    private var isWatching: Bool { state.withLock { $0.location != nil } }

    /// Writes what waits, refuses what comes later, and gives the directory up.
    ///
    /// - Parameter others: Closes the other connections, so that this one is the last, which removes the log. May block.
    func close(_ others: @escaping @Sendable () -> Void = {}) async {
        guard Self.foreignProcess == nil else { return }
        refuse(with: QueueError(.stopped, "the queue is closed"))
        await withCheckedContinuation { continuation in
            database.asyncWriteWithoutTransaction { _ in
                // Not from inside the database's own queue.
                DispatchQueue.global().async { [self] in
                    others()
                    drainAndClose()
                    continuation.resume()
                }
            }
        }
    }
}

// MARK: - Batches

extension CommitBatcher {
    /// In a child of fork(2) no thread works on the database's queue, and the files are the parent's.
    static var foreignProcess: QueueError? {
        ForkedChild.isCurrent ? QueueError(.stopped, "the queue cannot be used: \(SystemError.forked)") : nil
    }

    private func submit(_ operation: Operation) {
        if let foreign = Self.foreignProcess { return operation.finish(foreign) }
        let (refusal, schedules) = state.withLock { state -> (QueueError?, Bool) in
            if let refusal = state.refusal { return (refusal, false) }
            state.waiting.append(operation)
            defer { state.isScheduled = true }
            return (nil, !state.isScheduled)
        }
        if let refusal { return operation.finish(refusal) }
        if schedules { schedule() }
    }

    private func schedule() {
        database.asyncWriteWithoutTransaction { [self] database in
            commitBatch(database)
            let hasMore = state.withLock { state in
                state.isScheduled = !state.waiting.isEmpty
                return state.isScheduled
            }
            if hasMore { schedule() }
        }
    }

    private func commitBatch(_ database: Database) {
        var batch = Batch()
        guard !take(into: &batch).isEmpty else { return }
        let failure = commit(&batch, database)
        for operation in batch.operations { operation.finish(failure) }
    }

    /// Takes what waits, in its order, as far as there is room, but for an empty batch at least one.
    private func take(into batch: inout Batch) -> ArraySlice<Operation> {
        state.withLock { state in
            let taken = state.waiting.prefix { batch.admits($0.load) }
            state.waiting.removeFirst(taken.count)
            batch.operations += taken
            return taken
        }
    }

    private func commit(_ batch: inout Batch, _ database: Database) -> (any Error)? {
        do {
            if let refusal = poisoned { throw refusal }
            let isSynced = batch.operations.contains { $0.load.durability == .full }
            if !isSynced { try database.execute(sql: "PRAGMA synchronous = NORMAL") }
            try database.inTransaction(.immediate) {
                var next = batch.operations[...]
                while !next.isEmpty {
                    for operation in next { try perform(operation, database) }
                    // Those whom the commit before has let go are back by now. Left to the next commit they
                    // and those who wait for this one would take turns, each half of them, for good.
                    next = isSynced ? take(into: &batch) : []
                }
                CrashPoint.beforeCommit.reached()
                return .commit
            }
            CrashPoint.afterCommit.reached()
            try checkLocation()
            if !isSynced { try QueueDatabase.syncFully(database) }
            state.withLock { $0.commits += 1 }
            return nil
        } catch {
            return poison(with: error)
        }
    }

    /// A refusal is told to its caller by the operation itself, and leaves the others alone.
    private func perform(_ operation: Operation, _ database: Database) throws {
        do {
            guard operation.load.isAtomic else { return try operation.run(database) }
            try database.inSavepoint {
                try operation.run(database)
                return .commit
            }
        } catch is QueueError {}
    }

    private func drainAndClose() {
        database.writeWithoutTransaction { database in
            while state.withLock({ !$0.waiting.isEmpty }) { commitBatch(database) }
        }
        state.withLock { $0.location = nil }
        try? database.close()
        directory.release()
    }
}

// MARK: - Poison

extension CommitBatcher {
    private var poisoned: QueueError? {
        state.withLock { $0.refusal?.endsStore == true ? $0.refusal : nil }
    }

    /// Which errors leave the disk as it was is SQLite's secret; none of them is worth the risk. Neither is one of
    /// our own that nobody foresaw: whoever waits for a lease to end or a lane to move would wait for ever.
    private func poison(with error: any Error) -> any Error {
        guard !(error is QueueError) else { return error }
        note(error)
        let words = StoreFault.words(error)
        let failure =
            StoreFault.isDamage(error)
            ? StoreFault.damaged(words).error(path: directory.databasePath)
            : QueueError(.storeFailed, "the queue cannot write: \(words)", path: directory.databasePath)
        refuse(with: failure)
        return failure
    }

    /// Damage is damage, whoever met it. Other errors of reading say nothing of what is written.
    func readFailure(_ error: any Error) -> any Error {
        guard !StoreFault.isDamage(error) else { return poison(with: error) }
        guard error is DatabaseError else { return error }
        return QueueError(
            .storeUnavailable,
            "the queue cannot be read: \(StoreFault.words(error))",
            path: directory.databasePath
        )
    }

    /// So that the next start does not meet it again. A disk that does not take the note fails the start, too.
    private func note(_ error: any Error) {
        if StoreFault.isDamage(error) { try? directory.damage.write(StoreFault.words(error)) }
    }

    /// The first reason stays, except that a failure outranks a stop.
    private func refuse(with refusal: QueueError) {
        state.withLock { state in
            guard state.refusal?.endsStore != true else { return }
            if state.refusal == nil || refusal.endsStore { state.refusal = refusal }
        }
    }
}

/// Carries a result from the transaction to the end of the commit; both run on the database's queue.
private final class ResultCell<Value: Sendable>: Sendable {
    private let value = Mutex<Result<Value, any Error>?>(nil)

    func store(_ result: Result<Value, any Error>) {
        value.withLock { $0 = result }
    }

    func result(unless failure: (any Error)?) -> Result<Value, any Error> {
        if let failure { return .failure(failure) }
        return value.withLock { $0! }
    }
}
