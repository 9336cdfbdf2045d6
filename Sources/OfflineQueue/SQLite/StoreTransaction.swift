internal import Foundation
internal import GRDB

/// The values that do not change while a store is open.
struct StoreEnvironment: Sendable {
    let directory: String
    let settings: StoreSettings
    let clock: StoreClock
    /// Increases with every opening.
    let ownerEpoch: Int64
    /// The number of this boot.
    let boot: Int64
    let stagedBytes: StagedBytes

    /// Starts a run, with the first write of a new owner.
    init(
        opening database: Database,
        directory: String,
        settings: StoreSettings,
        clock: StoreClock,
        stagedBytes: StagedBytes
    ) throws {
        self.stagedBytes = stagedBytes
        self.directory = directory
        self.settings = settings
        self.clock = clock
        try database.execute(
            sql: """
                UPDATE meta SET owner_epoch = owner_epoch + 1, boot = boot + (boot_id <> :boot),
                clock_offset = iif(boot_id = :boot, clock_offset, :offset), boot_id = :boot
                """,
            arguments: ["boot": clock.bootID, "offset": clock.read().offset]
        )
        let row = try database.row("SELECT owner_epoch, boot FROM meta")!
        (ownerEpoch, boot) = try (row["owner_epoch"], row["boot"])
    }
}

/// One change of the store, within a SQLite transaction: its time, its tables, and the effects to apply after the
/// commit.
struct StoreTransaction {
    let database: Database
    let environment: StoreEnvironment
    let clock: StoreClock.Reading
    /// Lanes that have new work.
    var changedLanes: Set<Int64> = []
    /// Lanes from which a request was removed. Those that have no request left are reported.
    var drainedLanes: Set<Int64> = []
    /// Spool files that no row refers to any more.
    var freedFiles: [String] = []
    /// Records of changed lanes that are complete without reading the lane again.
    var changedRecords: [LaneRecord] = []

    init(_ database: Database, _ environment: StoreEnvironment) {
        self.database = database
        self.environment = environment
        clock = environment.clock.read()
    }

    var now: Timestamp { clock.wall }
    var settings: StoreSettings { environment.settings }

    struct Effects: Sendable {
        let lanes: [LaneRecord]
        let freed: [String]
    }

    func effects() throws -> Effects {
        let lanes = try changedLanes.sorted().compactMap { try lane($0)?.record(in: self) }
        return Effects(lanes: changedRecords + lanes + (try emptiedLanes()), freed: freedFiles)
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

    /// Checks that the last statement changed the row that this transaction has read.
    ///
    /// - Throws: ``DamagedColumn`` when it changed no row.
    func requireChange(of sequence: Int64) throws(DamagedColumn) {
        guard database.changesCount == 1 else {
            throw DamagedColumn(name: "seq", found: .int64(sequence))
        }
    }

    /// Makes this transaction sync the earlier ones. A transaction that writes nothing syncs nothing, and SQLite does
    /// not write a row whose values stay the same.
    func touch() throws {
        for _ in 0..<2 { try execute(StoreStatements.touch) }
    }

    /// Returns the time from now until a moment; zero for a moment in the past.
    func until(_ moment: Timestamp) -> Duration { max(.zero, moment - now) }
}
