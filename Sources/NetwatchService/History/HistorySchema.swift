internal import GRDB
internal import NetwatchEventLoop

/// The schema of the history's database.
enum HistorySchema {
    /// The `application_id` of a history's database, "nwhi" in ASCII.
    static let applicationID = 0x6e77_6869

    /// The schema's versions, oldest first. The migration to a version has its name.
    private static let versions = [version1]

    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        for (version, sql) in zip(1..., versions) {
            migrator.registerMigration("v\(version)") { try $0.execute(sql: sql) }
        }
        return migrator
    }

    private static let version1 = """
        PRAGMA application_id = \(applicationID);

        CREATE TABLE meta (
            -- When the history was last written, in milliseconds since 1970.
            written_at INTEGER NOT NULL,
            -- The same time by the boot clock. All times of the boot clock are in nanoseconds, and NULL if they were
            -- before the boot of `boot_id`.
            written_boot INTEGER,
            -- The kernel's id of the boot to which the times of the boot clock belong; '' if it is not known.
            boot_id TEXT NOT NULL,
            -- The time of `HistoryClock` at the last write, and its time when the boot of `boot_id` began.
            clock INTEGER NOT NULL,
            boot_clock INTEGER NOT NULL
        ) STRICT;
        INSERT INTO meta (written_at, boot_id, clock, boot_clock) VALUES (0, '', 1, 1);

        CREATE TABLE host (
            id INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE
        ) STRICT;

        CREATE TABLE bucket (
            host_id INTEGER NOT NULL REFERENCES host (id) ON DELETE CASCADE,
            -- 0 for minutes, 1 for hours, 2 for days.
            tier INTEGER NOT NULL,
            -- In seconds since 1970.
            start INTEGER NOT NULL,
            -- The milliseconds in each state.
            up INTEGER NOT NULL,
            remote INTEGER NOT NULL,
            local INTEGER NOT NULL,
            probes INTEGER NOT NULL,
            failures INTEGER NOT NULL,
            -- In the format of `LatencyHistogram.stored`.
            latencies TEXT NOT NULL,
            -- The time of `HistoryClock` when the row was last written.
            clock INTEGER NOT NULL,
            PRIMARY KEY (host_id, tier, start)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX bucket_age ON bucket (tier, clock);

        -- Times in milliseconds since 1970. While an outage lasts, each write sets `started_at` to the time by the wall
        -- clock as it is set then. ended_at: NULL while the outage lasts. clock: see `bucket`.
        CREATE TABLE outage (
            id INTEGER PRIMARY KEY,
            host_id INTEGER NOT NULL REFERENCES host (id) ON DELETE CASCADE,
            cause TEXT NOT NULL CHECK (cause IN ('local', 'remote')),
            started_at INTEGER NOT NULL,
            started_boot INTEGER,
            ended_at INTEGER,
            reason TEXT,
            clock INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX outage_age ON outage (host_id, started_at);
        CREATE UNIQUE INDEX outage_open ON outage (host_id) WHERE ended_at IS NULL;

        -- When each host was first down for each cause since it was last up, in milliseconds since 1970. For hooks,
        -- this is one outage. The state of the host may be unknown now.
        CREATE TABLE hook_outage (
            host_id INTEGER NOT NULL REFERENCES host (id) ON DELETE CASCADE,
            cause TEXT NOT NULL CHECK (cause IN ('local', 'remote')),
            started_at INTEGER NOT NULL,
            started_boot INTEGER,
            -- The first value of `started_at`, which identifies the outage.
            start_id INTEGER NOT NULL,
            PRIMARY KEY (host_id, cause)
        ) STRICT, WITHOUT ROWID;

        -- The outages that each hook has reported and whose ends it has not. hook: see `Hook.keys(of:)`. The other
        -- columns are those of `hook_outage`.
        CREATE TABLE hook_report (
            hook TEXT NOT NULL,
            host_id INTEGER NOT NULL REFERENCES host (id) ON DELETE CASCADE,
            cause TEXT NOT NULL CHECK (cause IN ('local', 'remote')),
            started_at INTEGER NOT NULL,
            started_boot INTEGER,
            start_id INTEGER NOT NULL,
            PRIMARY KEY (hook, host_id)
        ) STRICT, WITHOUT ROWID;

        -- The messages that the queue may not have stored. id: the id of the request.
        CREATE TABLE hook_message (
            position INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            hook TEXT NOT NULL,
            body BLOB NOT NULL
        ) STRICT;
        """
}

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

/// The reason why the file of the history cannot be opened, read or written. The description begins with its path.
package struct HistoryFault: Error, CustomStringConvertible {
    /// What a user can do if the file can never be used.
    static let advice = "; to start a new history, stop the service and remove the file"

    package let description: String

    /// - Parameter isOpening: Whether the error occurred while the file was opened. Without this file, the history cannot
    ///   be used; a failed read or write can be repeated.
    init(_ path: String, _ error: any Error, isOpening: Bool = false) {
        let fault = error as? DatabaseError
        let isDamage = [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(fault?.resultCode)
        let advice = isDamage ? Self.advice : ""
        let subject = isOpening ? "`\(path)` cannot be used" : "`\(path)`"
        description = "\(subject): \(fault?.message ?? "\(error)")\(advice)"
    }
}
