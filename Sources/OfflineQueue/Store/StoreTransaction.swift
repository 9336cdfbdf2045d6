internal import Foundation
internal import GRDB

/// What stays the same while a store is open.
struct StoreEnvironment: Sendable {
    let directory: String
    let settings: StoreSettings
    let clock: StoreClock
    /// Rises with every opening.
    let ownerEpoch: Int64
    /// The number of this boot.
    let boot: Int64
    let stagedBytes: StagedBytes

    /// Begins a run: the first that a new owner writes.
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

/// One change of the store, within SQLite's transaction: its moment, its tables, and what follows from it
/// once it is on the disk.
struct StoreTransaction {
    let database: Database
    let environment: StoreEnvironment
    let clock: StoreClock.Reading
    /// Lanes that have something new to do.
    var changedLanes: Set<Int64> = []
    /// Files of the spool that no row names any more.
    var freedFiles: [String] = []
    /// Lanes of which all that others need to know is known.
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
        return Effects(lanes: changedRecords + lanes, freed: freedFiles)
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

    /// What was read in this transaction has to be found again.
    ///
    /// - Throws: ``DamagedColumn`` when the last statement has changed no row.
    func requireChange(of sequence: Int64) throws(DamagedColumn) {
        guard database.changesCount == 1 else {
            throw DamagedColumn(name: "seq", found: .int64(sequence))
        }
    }

    /// Makes this transaction sync those before it: one that writes nothing syncs nothing, and SQLite writes no row
    /// that stays as it is.
    func touch() throws {
        for _ in 0..<2 { try execute(StoreStatements.touch) }
    }

    /// From now on; zero for what is past.
    func until(_ moment: Timestamp) -> Duration { max(.zero, moment - now) }
}
