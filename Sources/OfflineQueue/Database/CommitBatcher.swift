internal import Dispatch
internal import GRDB
internal import NetwatchEventLoop
internal import Synchronization

/// Groups concurrent writes into one transaction, so that they share one `fsync(2)`.
///
/// No delay is added. While one commit is being synced, the next batch collects operations. Operations that arrive
/// while the batch is being written join it. A caller is resumed once its transaction is durable.
///
/// After an error the batcher writes nothing more. SQLite itself would continue as if nothing had happened, and treat a
/// second `fsync(2)` of lost pages as a success.
final class CommitBatcher: Sendable {
    private struct State {
        var waiting: [Operation] = []
        var isScheduled = false
        var refusal: QueueError?
        var commits = 0
        var location: StoreLocation?
    }

    /// The maximum number of rows that one transaction writes for several callers.
    static let maximumRows = 512

    /// The approximate maximum size of SQLite's write-ahead log in bytes. At 1000 pages (`PRAGMA wal_autocheckpoint`)
    /// the log is copied to the database; the batch that reaches this number comes on top.
    static let longestLog: Int64 = 8 << 20

    private let database: DatabaseQueue
    private let directory: QueueDirectory
    private let state = Mutex(State())
    private let truncation = Mutex<LogTruncation?>(nil)

    init(database: DatabaseQueue, directory: QueueDirectory) {
        ForkedChild.watch()
        self.database = database
        self.directory = directory
    }

    /// The number of committed transactions.
    var commits: Int { state.withLock { $0.commits } }

    /// Runs `body` in a transaction, possibly shared with other writes, and returns after the commit.
    ///
    /// A ``QueueError`` that `body` throws fails this write only. `body` must throw it before it writes, unless the
    /// load is atomic.
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

    /// Runs `body` between two commits.
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

    /// Runs `body` between two commits and waits for it. Blocks, and must not be called on the cooperative thread pool.
    func readBlocking<Value>(_ body: (Database) throws -> Value) throws -> Value {
        try database.writeWithoutTransaction(body)
    }

    /// From now on, the log is truncated after a commit when it has become long.
    func setLogTruncation(_ truncation: LogTruncation) {
        self.truncation.withLock { $0 = truncation }
    }

    /// From now on, a commit succeeds only if every file of the location is still in its place afterwards.
    func watch(_ location: StoreLocation) {
        state.withLock { $0.location = location }
    }

    /// Stops the store when one of its files is no longer in its place. Blocks.
    func checkLocation() throws(QueueError) {
        guard let difference = state.withLock({ $0.location })?.difference(), isWatching else { return }
        refuse(with: difference)
        throw difference
    }

    /// Whether the files have to be in their places. SQLite removes the log itself when the database is closed.
    private var isWatching: Bool { state.withLock { $0.location != nil } }

    /// Commits the pending operations, refuses later ones, and releases the directory.
    ///
    /// - Parameter others: Closes the other connections, so that this one is the last, which removes the log. May
    ///   block.
    func close(_ others: @escaping @Sendable () -> Void = {}) async {
        guard Self.foreignProcess == nil else { return }
        refuse(with: QueueError(.stopped, "the queue is closed"))
        await withCheckedContinuation { continuation in
            database.asyncWriteWithoutTransaction { _ in
                // `drainAndClose` enters the database's queue synchronously, so it must not run on it.
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
    /// A child of fork(2) has no thread that serves the database's queue, and the files belong to the parent.
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

    /// Takes pending operations in order while they fit. An empty batch takes at least one.
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
            if let refusal = storeFailure { throw refusal }
            let isSynced = batch.operations.contains { $0.load.durability == .full }
            if !isSynced { try database.execute(sql: "PRAGMA synchronous = NORMAL") }
            try database.inTransaction(.immediate) {
                var next = batch.operations[...]
                while !next.isEmpty {
                    for operation in next { try perform(operation, database) }
                    // Callers resumed by the previous commit have submitted their next operations by now. If those
                    // waited for the next commit, the two groups of callers would alternate for good, each with
                    // half-full batches.
                    next = isSynced ? take(into: &batch) : []
                }
                CrashPoint.beforeCommit.reached()
                return .commit
            }
            CrashPoint.afterCommit.reached()
            try checkLocation()
            if !isSynced { try QueueDatabase.syncFully(database) }
            truncation.withLock { $0?.run(on: database) }
            state.withLock { $0.commits += 1 }
            return nil
        } catch {
            return fail(with: error)
        }
    }

    /// The operation itself reports a refusal to its caller. The other operations are not affected.
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
    private var storeFailure: QueueError? {
        state.withLock { $0.refusal?.endsStore == true ? $0.refusal : nil }
    }

    /// SQLite does not document which errors leave the disk unchanged, so every error stops the store. So do unexpected
    /// errors of our own: otherwise callers would wait forever for a lease to end or a lane to change.
    private func fail(with error: any Error) -> any Error {
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

    /// Damage stops the store, even if a read finds it. Other read errors do not affect writes.
    func readFailure(_ error: any Error) -> any Error {
        guard !StoreFault.isDamage(error) else { return fail(with: error) }
        guard error is DatabaseError else { return error }
        return QueueError(
            .storeUnavailable,
            "the queue cannot be read: \(StoreFault.words(error))",
            path: directory.databasePath
        )
    }

    /// Leaves a note, so that the next start reports the damage at once. Errors are ignored: a disk that cannot store
    /// the note makes the next start fail, too.
    private func note(_ error: any Error) {
        if StoreFault.isDamage(error) { try? directory.damage.write(StoreFault.words(error)) }
    }

    /// Keeps the first refusal, except that a failure replaces a stop.
    private func refuse(with refusal: QueueError) {
        state.withLock { state in
            guard state.refusal?.endsStore != true else { return }
            if state.refusal == nil || refusal.endsStore { state.refusal = refusal }
        }
    }
}
