internal import GRDB
internal import NetwatchEventLoop

/// The clock of a history, by which its rows age. It counts the time that has certainly passed since the file was
/// created, in milliseconds.
///
/// Within a boot it follows the boot clock, so a step of the wall clock does not change the age of a row. The time from
/// the last write of a boot to the first write of the next one is not known, and it does not count.
struct HistoryClock {
    /// The time of this clock.
    let now: Int64
    /// The time at which this boot began. Rows with an earlier time were written in an earlier boot.
    private let boot: Int64

    init(at moment: HostTracker.Moment, _ database: Database) throws {
        let row = try Row.fetchOne(database, sql: "SELECT written_boot, clock, boot_clock FROM meta")
        let written: Int64? = row?["written_boot"]
        let passed = written.map { (moment.boot - BootInstant(nanoseconds: $0)).milliseconds } ?? 0
        now = (row?["clock"] ?? 0) + max(0, passed)
        boot = row?["boot_clock"] ?? 0
    }

    /// Begins a boot: the rows that exist are of earlier ones.
    static func beginBoot(_ database: Database) throws {
        try database.execute(
            sql: "UPDATE meta SET written_boot = NULL, clock = clock + 1, boot_clock = clock + 1"
        )
    }

    /// Deletes the rows of a table that meet a condition and are older than a retention.
    ///
    /// Rows of earlier boots may be older than this clock shows. If the wall clock is correct, it decides about them,
    /// too.
    ///
    /// - Parameters:
    ///   - date: An expression for the time of a row by the wall clock, in milliseconds since 1970.
    ///   - retention: In seconds.
    ///   - wall: The current time by the wall clock, in milliseconds since 1970; `nil` if it may be wrong.
    func deleteOld(
        from table: String,
        where condition: String,
        date: String,
        retention: Int64,
        wall: Int64?,
        _ database: Database
    ) throws {
        try database.execute(
            sql: "DELETE FROM \(table) WHERE \(condition) AND clock < ?",
            arguments: [now - retention * 1000]
        )
        guard let wall else { return }
        try database.execute(
            sql: "DELETE FROM \(table) WHERE \(condition) AND clock < ? AND \(date) < ?",
            arguments: [boot, wall - retention * 1000]
        )
    }
}
