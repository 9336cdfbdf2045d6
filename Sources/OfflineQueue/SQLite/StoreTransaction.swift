internal import Foundation
internal import GRDB
internal import NetwatchEventLoop
internal import Synchronization

/// The values that all transactions of an open store share.
struct StoreEnvironment: Sendable {
    let directory: String
    let settings: SharedValue<StoreSettings>
    let clock: StoreClock
    /// The number of this run of the queue, which increases each time the store is opened.
    let ownerEpoch: Int64
    /// The number of this boot, as counted by this store.
    let boot: Int64
    let stagedBytes: StagedBytes
    let events: EventRecorder
    let sealer: Sealer
    let restored = RestoredCount()
    /// The difference between the clocks to which the stored dates are adjusted; see ``StoreClock/Reading/offset``.
    let followedOffset: SharedValue<Int64>

    /// Starts a run of the queue: the first write of a new owner, which increases the epoch and records the boot.
    init(
        opening database: Database,
        directory: String,
        settings: StoreSettings,
        clock: StoreClock,
        stagedBytes: StagedBytes,
        events: EventRecorder,
        keys: KeyRing?
    ) throws {
        self.stagedBytes = stagedBytes
        self.events = events
        self.directory = directory
        self.settings = SharedValue(settings)
        self.clock = clock
        let times = StoredTimes(database: database, clock: clock.read(), isTrusted: clock.isTrusted)
        try times.begin(boot: clock.bootID)
        try database.execute(sql: "UPDATE meta SET owner_epoch = owner_epoch + 1")
        let row = try database.row(StoreStatements.openedMeta)!
        (ownerEpoch, boot) = try (row["owner_epoch"], row["boot"])
        followedOffset = SharedValue(try row["clock_offset"])
        sealer = Sealer(keys: keys, lastKeyID: try row["key_id"], isLastKeyNeeded: try row["is_key_needed"])
    }
}

extension StoreEnvironment {
    /// Returns whether the wall clock was set since the stored dates were adjusted to it.
    func isStep(to offset: Int64) -> Bool { StoredTimes.isStep(from: followedOffset.value, to: offset) }
}

/// The number of dead requests that were retried since the store was opened. Each of them has moved from the table
/// `history` to `request`, where a pass of the conversion may have missed it.
final class RestoredCount: Sendable {
    private let value = Atomic(0)

    var count: Int { value.load(ordering: .relaxed) }

    func increase() { value.add(1, ordering: .relaxed) }
}

/// A value of an open store that can change between transactions.
final class SharedValue<Value: Sendable>: Sendable {
    private let current: Lock<Value>

    init(_ value: Value) { current = Lock(value) }

    var value: Value { current.withLock { $0 } }

    /// Replaces the value for later transactions.
    func replace(_ new: Value) { current.withLock { $0 = new } }
}

/// One read or change of the store within an SQLite transaction. It reads the settings and the clocks once, and collects
/// the effects that the caller applies after the commit.
struct StoreTransaction {
    let database: Database
    let environment: StoreEnvironment
    let settings: StoreSettings
    let clock: StoreClock.Reading
    /// The ids of lanes that have new work.
    var changedLanes: Set<Int64> = []
    /// The ids of lanes with requests that a user or program released.
    var releasedLanes: Set<Int64> = []
    /// The ids of lanes from which a request was removed. Lanes that are empty at the end of the transaction are
    /// reported.
    var drainedLanes: Set<Int64> = []
    /// The tags of requests that have ended.
    var completedTags: Set<String> = []
    /// The names of spool files to which no row refers any more.
    var freedFiles: [String] = []
    /// Records of changed lanes that are already complete, so that the lanes need not be read again.
    var changedRecords: [LaneRecord] = []

    init(_ database: Database, _ environment: StoreEnvironment) {
        self.database = database
        self.environment = environment
        settings = environment.settings.value
        clock = environment.clock.read()
    }

    var now: Timestamp { clock.wall }

    /// The current time as arguments of statements.
    var moment: StatementArguments {
        ["now": now.milliseconds, "boot": environment.boot, "sinceBoot": clock.sinceBoot]
    }

    /// What the caller must do after the commit: post the records of `lanes` and the tags `completed`, and remove the
    /// spool files `freed`.
    struct Effects: Sendable {
        let lanes: [LaneRecord]
        let completed: Set<String>
        let freed: [String]
    }

    /// Returns the effects of the changes so far.
    func effects() throws -> Effects {
        let lanes = try changedLanes.sorted().compactMap { id -> LaneRecord? in
            guard var record = try lane(id)?.record(in: self) else { return nil }
            record.wasReleased = releasedLanes.contains(id)
            return record
        }
        return Effects(
            lanes: changedRecords + lanes + (try emptiedLanes()),
            completed: completedTags,
            freed: freedFiles
        )
    }

    private func emptiedLanes() throws -> [LaneRecord] {
        try drainedLanes.subtracting(changedLanes).sorted().compactMap { try lane($0) }
            .filter(\.isEmpty).map { try $0.record(in: self) }
    }

    func row(_ sql: String, _ arguments: StatementArguments = StatementArguments()) throws -> StoredRow? {
        try database.row(sql, arguments)
    }

    func rows(_ sql: String, _ arguments: StatementArguments = StatementArguments()) throws -> [StoredRow] {
        try database.rows(sql, arguments)
    }

    func cursor(_ sql: String, _ arguments: StatementArguments) throws -> StoredRowCursor {
        try database.cursor(sql, arguments)
    }

    func execute(_ sql: String, _ arguments: StatementArguments = StatementArguments()) throws {
        try database.cachedStatement(sql: sql).execute(arguments: arguments)
    }

    /// Checks that the last statement changed exactly one row, because this transaction has read that row before.
    ///
    /// - Throws: ``DamagedColumn`` if it did not, for example because the table and its index disagree.
    func requireChange(of sequence: Int64) throws(DamagedColumn) {
        guard database.changesCount == 1 else {
            throw DamagedColumn(name: "seq", found: .int64(sequence))
        }
    }

    /// Makes the commit of this transaction sync earlier commits that were not synced. SQLite syncs only if the
    /// transaction writes, and it does not write a row whose values stay the same. Therefore this changes a value and
    /// changes it back.
    func touch() throws {
        for _ in 0..<2 { try execute(StoreStatements.touch) }
    }

    /// Returns a row of `request` or `history` with its encrypted columns decrypted, and its content.
    ///
    /// - Throws: ``SealFault`` if the row cannot be read.
    func opened(_ row: StoredRow) throws -> (row: StoredRow, content: RequestContent) {
        // A store that was never encrypted need not look at each row.
        let opened = environment.sealer.mayOpen ? try row.opened(by: environment.sealer) : row
        return (opened, try RequestContent(opened))
    }

    /// Returns the sealer for values that this transaction writes. Records its key, if there is one: from the first
    /// encrypted value on, the store accepts no requests without a key. A store that was only read with a key does.
    func sealerForWriting() throws -> Sealer {
        let sealer = environment.sealer
        // Usually the key was already recorded when the store was opened.
        if let keyID = sealer.keyID, keyID != sealer.lastKeyID {
            try execute("UPDATE meta SET key_id = ?1 WHERE key_id IS NOT ?1", [keyID])
        }
        return sealer
    }

    /// Returns values of a row with a `key_id`, encrypted with the current key. The row must be decrypted.
    ///
    /// - Throws: ``QueueError/Code/encryptionKeyMissing`` if the store has no key for them.
    func sealed(_ columns: [SealedColumn], of row: StoredRow) throws -> [DatabaseValue] {
        try environment.sealer.requireUnlocked()
        return try row.sealed(columns, by: try sealerForWriting(), of: try row["id"])
    }

    /// Returns a row and its content, like ``opened(_:)``, for a call that needs them.
    ///
    /// - Throws: ``QueueError``, which refuses only this call.
    func openedForCaller(_ row: StoredRow) throws -> (row: StoredRow, content: RequestContent) {
        do { return try opened(row) } catch let fault as SealFault {
            let code: QueueError.Code = fault.isKeyMissing ? .encryptionKeyMissing : .storeUnavailable
            throw QueueError(code, "the stored request cannot be read: \(fault)")
        }
    }

    /// Returns the duration from now until a time; zero for a time in the past.
    func until(_ moment: Timestamp) -> Duration { max(.zero, moment - now) }
}

/// The finished requests with a tag that no handler has handled yet. Triggers add them and remove them together with
/// their rows in `history`.
extension StoreTransaction {
    /// Returns the first completion of a tag after a position; `nil` if there is none, or if its key is
    /// missing. In that case it waits until the queue is opened with the key: a handler must not be called without the
    /// response.
    func completion(of tag: String, after position: Int64) throws -> StoredCompletion? {
        let next = try row(StoreStatements.nextCompletion, ["tag": tag, "after": position])
        guard let next else { return nil }
        do {
            let request = try details(of: next, isOver: true, mustBeReadable: true)
            return StoredCompletion(position: try next["completion"], request: request)
        } catch let fault as SealFault {
            // What is damaged stays so, and the others with the tag must not wait for it.
            guard fault.isDamage else { return nil }
            return StoredCompletion(
                position: try next["completion"],
                request: try details(of: next, isOver: true)
            )
        }
    }

    func removeCompletion(at position: Int64) throws {
        try execute(StoreStatements.removeCompletion, [position])
    }

    func waitingCompletions() throws -> [QueueStatistics.WaitingCompletions] {
        try rows(StoreStatements.completionCounts, [QueueStatistics.maximumPausedLanes]).map {
            try QueueStatistics.WaitingCompletions(tag: $0["tag"], count: $0["number"])
        }
    }
}
