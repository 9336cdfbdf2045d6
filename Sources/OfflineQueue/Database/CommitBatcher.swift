internal import Dispatch
internal import GRDB
internal import NetwatchEventLoop

/// Commits concurrent writes in one transaction, so that they share one `fsync(2)`.
///
/// The batcher never delays a write to collect more. While one batch is being synced, new operations wait and form the
/// next batch. Operations that arrive while a batch is being written join it. A caller is resumed when its transaction
/// is durable.
///
/// After a failed commit, the batcher refuses all further writes. SQLite itself would continue, and a second `fsync(2)`
/// would succeed although the kernel has dropped the pages that it could not write.
final class CommitBatcher: Sendable {
    private struct State {
        var waiting: [Operation] = []
        var isScheduled = false
        var isTruncating = false
        var refusal: QueueError?
        var durations = DurationHistogram(limits: CommitBatcher.durationLimits)
        var location: StoreLocation?
    }

    /// The maximum number of rows in one transaction. Only a single operation may exceed it.
    static let maximumRows = 512

    /// The approximate maximum size of SQLite's write-ahead log (the "log" from here on) in bytes. SQLite copies the
    /// log to the database when the log has 1000 pages (`PRAGMA wal_autocheckpoint`). The batch that reaches this
    /// number may write more pages. SQLite shortens a longer file to this size when it starts the log again.
    static let longestLog: Int64 = 8 << 20

    /// From the sync of a fast disk to the busy timeouts of typical clients.
    private static let durationLimits: [Duration] = [
        .microseconds(500), .milliseconds(1), .milliseconds(2), .milliseconds(5), .milliseconds(10),
        .milliseconds(20), .milliseconds(50), .milliseconds(100), .milliseconds(500), .seconds(1),
        .seconds(5), .seconds(30),
    ]

    private let database: DatabaseQueue
    private let directory: QueueDirectory
    private let state = Lock(State())
    private let truncation = Lock<LogTruncation?>(nil)
    /// Receives the changes of the rows. Operations tell it when they begin.
    let events = EventRecorder(EventFeed())

    init(database: DatabaseQueue, directory: QueueDirectory) {
        ForkedChild.watch()
        self.database = database
        self.directory = directory
    }

    /// The durations of the committed transactions, from their first statement to the end of their sync.
    var durations: DurationHistogram { state.withLock { $0.durations } }

    /// Runs `body` in a transaction, which other writes may share, and returns after the commit.
    ///
    /// A ``QueueError`` that `body` throws refuses this write only. Unless ``Load/isAtomic`` is set, `body` must throw
    /// it before it writes anything.
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

    /// Runs `body` on the writing connection, between two commits.
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

    /// Begins to record the events of all later transactions.
    func subscribe() async throws -> EventFeed.Subscription {
        try await read { [events] in try events.subscribe($0) }
    }

    /// Checks that the store may be read.
    ///
    /// - Throws: ``QueueError`` `stopped` if the store is closed, or in a child process of fork(2).
    func checkReadable() throws {
        if let foreign = Self.foreignProcess { throw foreign }
        if let refusal = state.withLock({ $0.refusal }), refusal.code == .stopped { throw refusal }
    }

    /// Runs `body` on the writing connection, between two commits. Blocks, and must not be called on the cooperative
    /// thread pool.
    func readBlocking<Value>(_ body: (Database) throws -> Value) throws -> Value {
        try database.writeWithoutTransaction(body)
    }

    /// Enables the truncation of a long log after each commit.
    func setLogTruncation(_ truncation: LogTruncation) {
        self.truncation.withLock { $0 = truncation }
    }

    /// Enables the check of the store's files after each commit. A commit fails if one of the files was removed or
    /// replaced.
    func watch(_ location: StoreLocation) {
        state.withLock { $0.location = location }
    }

    /// Throws the error that has ended the store, such as damage that a read found. If there is none, checks that the
    /// store's files were not removed or replaced, and begins to truncate a long log. Blocks.
    func check() throws(QueueError) {
        if let failure = storeFailure { throw failure }
        try checkLocation()
        truncateLongLog()
    }

    /// Truncates a long log between two commits. A queue that does not write would otherwise keep the log that it had
    /// while another process read the database. On a full disk, this log may be the reason why nothing is written.
    private func truncateLongLog() {
        guard Self.foreignProcess == nil, truncation.withLock({ $0?.isLong == true }), beginsTruncation()
        else { return }
        database.asyncWriteWithoutTransaction { [self] database in
            if storeFailure == nil, isWatching {
                truncation.withLock { $0?.run(on: database, isRepeated: true) }
            }
            state.withLock { $0.isTruncating = false }
        }
    }

    private func beginsTruncation() -> Bool {
        state.withLock { state in
            defer { state.isTruncating = true }
            return !state.isTruncating
        }
    }

    /// Checks that the store's files were not removed or replaced. Otherwise stops the store and throws the error.
    /// Blocks.
    private func checkLocation() throws(QueueError) {
        guard let difference = state.withLock({ $0.location })?.difference(), isWatching else { return }
        refuse(with: difference)
        throw difference
    }

    /// Whether a missing file is an error. It is not while the database is being closed, because SQLite then removes
    /// the log itself.
    private var isWatching: Bool { state.withLock { $0.location != nil } }

    /// Commits the waiting operations, refuses later ones, closes the database and releases the directory.
    ///
    /// - Parameter others: Closes all other connections to the database; may block. The last connection to close
    ///   removes the log, and it must be this one, because the others are read-only.
    func close(_ others: @escaping @Sendable () -> Void = {}) async {
        guard Self.foreignProcess == nil else { return }
        refuse(with: QueueError(.stopped, "the queue is closed"))
        await withCheckedContinuation { continuation in
            database.asyncWriteWithoutTransaction { _ in
                // `drainAndClose` waits for the database's queue, so it must not run on that queue.
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
    /// The error for a call in a child process of fork(2); `nil` in the process that opened the store. A child has no
    /// threads that serve the database's queue, and the files belong to its parent.
    static var foreignProcess: QueueError? {
        ForkedChild.isCurrent ? QueueError(.stopped, "the queue cannot be used in a child of fork(2)") : nil
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
        // Published before the callers are resumed, so that a caller finds the events of its own change.
        if failure == nil { events.committed() } else { events.rolledBack() }
        for operation in batch.operations { operation.finish(failure) }
    }

    /// Moves waiting operations into the batch, in their order, as long as they fit. An empty batch accepts any first
    /// operation.
    private func take(into batch: inout Batch) -> ArraySlice<Operation> {
        state.withLock { state in
            let taken = state.waiting.prefix { batch.admits($0.load) }
            state.waiting.removeFirst(taken.count)
            batch.operations += taken
            return taken
        }
    }

    private func commit(_ batch: inout Batch, _ database: Database) -> (any Error)? {
        let start = ContinuousClock.now
        do {
            if let refusal = storeFailure { throw refusal }
            try events.removeUnusedTriggers(database)
            let isSynced = batch.operations.contains { $0.load.durability == .full }
            if !isSynced { try database.execute(sql: "PRAGMA synchronous = NORMAL") }
            try database.inTransaction(.immediate) {
                var next = batch.operations[...]
                while !next.isEmpty {
                    for operation in next { try perform(operation, database) }
                    // Callers that the previous commit resumed have submitted their next operations by now, and these
                    // join this batch. Otherwise two groups of callers would alternate forever, each with half-full
                    // batches.
                    next = isSynced ? take(into: &batch) : []
                }
                CrashPoint.beforeCommit.reached()
                return .commit
            }
            CrashPoint.afterCommit.reached()
            try checkLocation()
            if !isSynced { try QueueDatabase.syncFully(database) }
            state.withLock { $0.durations.add(ContinuousClock.now - start) }
            truncation.withLock { $0?.run(on: database) }
            return nil
        } catch {
            return fail(with: error)
        }
    }

    /// Runs an operation. A refusal (``QueueError``) is caught, because the operation itself reports it to its caller,
    /// and the other operations must continue.
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

// MARK: - Errors

extension CommitBatcher {
    private var storeFailure: QueueError? {
        state.withLock { $0.refusal?.endsStore == true ? $0.refusal : nil }
    }

    /// Stops the store after an error, and returns the error for the callers.
    ///
    /// Every SQLite error stops the store, because SQLite does not document which errors leave the disk unchanged.
    /// Unexpected errors of the queue's own code do, too. Otherwise callers would wait forever for a lease to end or a
    /// lane to change.
    private func fail(with error: any Error) -> any Error {
        guard !(error is QueueError) else { return error }
        note(error)
        let words = StoreFault.words(error)
        let failure =
            StoreFault.isDamage(error)
            ? StoreFault.damaged(words).error(path: directory.databasePath)
            : QueueError(
                .storeFailed,
                "a write to the queue's database `\(directory.databasePath)` failed: "
                    + StoreFault.explained(words, at: directory.databasePath)
                    + "; the queue writes nothing more until it is opened again",
                path: directory.databasePath
            )
        refuse(with: failure)
        return failure
    }

    /// Returns the error for a failed read. If the read found damage, this also stops the store. Other read errors do
    /// not affect writes.
    func readFailure(_ error: any Error) -> any Error {
        guard !StoreFault.isDamage(error) else { return fail(with: error) }
        guard error is DatabaseError else { return error }
        return QueueError(
            .storeUnavailable,
            "a read of the queue's database `\(directory.databasePath)` failed: \(StoreFault.words(error))",
            path: directory.databasePath
        )
    }

    /// Records damage in the file `queue.damaged`, so that the next start reports it immediately. An error is ignored,
    /// because a disk that cannot store this file will make the next start fail as well.
    private func note(_ error: any Error) {
        if StoreFault.isDamage(error) { try? directory.damage.write(StoreFault.words(error)) }
    }

    /// Records damage that a scan has found, unless damage is recorded already. The store continues, because the
    /// requests that do not need the damaged part can still be delivered. Blocks.
    func record(damage: String) {
        if directory.damage.text == nil { try? directory.damage.write(damage) }
    }

    /// Sets the error of all later writes. The first error is kept, with one exception: an error that ends the store
    /// replaces the error for a closed queue.
    private func refuse(with refusal: QueueError) {
        state.withLock { state in
            guard state.refusal?.endsStore != true else { return }
            if state.refusal == nil || refusal.endsStore { state.refusal = refusal }
        }
        if refusal.endsStore { events.feed.finish() }
    }
}
