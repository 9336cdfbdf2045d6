internal import GRDB

/// The times in the rows of a store. They follow the clock when it is set, and keep their meaning after a reboot.
///
/// A time that decides something is stored by the boot clock, which cannot be set, together with the number of the boot.
/// The columns by the wall clock contain the same times as dates. They are what indexes and users need, and what
/// remains valid after the boot, if the clock was synchronized during it.
struct StoredTimes {
    let database: Database
    let clock: StoreClock.Reading
    /// Whether the kernel reports the wall clock as synchronized.
    let isTrusted: Bool

    /// The columns that store one time by both clocks.
    private struct Columns {
        let table, boot, sinceBoot, wall: String
    }

    private static let columns = [
        Columns(table: "request", boot: "boot", sinceBoot: "boot_expire_at", wall: "expire_at"),
        Columns(table: "history", boot: "finished_boot", sinceBoot: "boot_finished_at", wall: "finished_at"),
    ]

    /// The columns with past times by the wall clock only. Nothing that they decide is lost if they are wrong.
    private static let pastTimes = [
        ("request", "created_at"), ("request", "conflict_at"), ("history", "created_at"), ("attempt", "started_at"),
    ]
}

// MARK: - Within a boot

extension StoredTimes {
    /// Adjusts the stored times after the wall clock was set. Returns by how many milliseconds it was set; `nil` if it
    /// was not.
    func followClock(boot: Int64) throws -> Int64? {
        let meta = try database.row("SELECT clock_offset, trusted_offset FROM meta")!
        if isTrusted, isStep(from: try meta["trusted_offset"]) { try setMeta("trusted_offset") }
        let known: Int64 = try meta["clock_offset"]
        guard isStep(from: known) else { return nil }
        try setMeta("clock_offset")
        try setDates(ofBoot: boot, offset: clock.offset)
        try execute("UPDATE lane SET not_before = boot_not_before + ? WHERE not_before IS NOT NULL", [clock.offset])
        let step = clock.offset - known
        for (table, column) in Self.pastTimes {
            // The wall clock showed `known` when the machine booted, so these times are of this boot.
            try execute(
                "UPDATE \(table) SET \(column) = \(column) + ? WHERE \(column) BETWEEN ? AND ?",
                [step, known, known + clock.sinceBoot]
            )
        }
        return step
    }

    /// A difference of up to 1 s can result from slewing, and is ignored.
    private func isStep(from offset: Int64?) -> Bool {
        guard let offset else { return true }
        return abs(offset - clock.offset) > 1000
    }

    private func setMeta(_ column: String) throws {
        try execute("UPDATE meta SET \(column) = ?", [clock.offset])
    }

    private func setDates(ofBoot boot: Int64, offset: Int64) throws {
        for columns in Self.columns {
            try execute(
                "UPDATE \(columns.table) SET \(columns.wall) = \(columns.sinceBoot) + ? WHERE \(columns.boot) = ?",
                [offset, boot]
            )
        }
    }

    private func execute(_ sql: String, _ arguments: StatementArguments) throws {
        try database.cachedStatement(sql: sql).execute(arguments: arguments)
    }
}

// MARK: - After a boot

extension StoredTimes {
    /// Records the boot in which the store is opened. If it is another one than before, gives the times of the ended
    /// boot their meaning in this one.
    func begin(boot id: String) throws {
        let meta = try database.row("SELECT boot_id, boot, trusted_offset FROM meta")!
        guard try meta["boot_id"] != id else { return }
        let (boot, trusted): (Int64, Int64?) = try (meta["boot"], meta["trusted_offset"])
        let last = try lastTime(ofBoot: boot)
        // Boot 0 stands for times that are known only as dates: of imports, and of earlier versions.
        if boot > 0 { try endBoot(boot, at: last, trusted: trusted) }
        // The time of the ended boot's clock that corresponds to now. If it is not known for how long the machine was
        // off, a closure does not continue meanwhile.
        let now = trusted.flatMap { isTrusted ? clock.wall.milliseconds - $0 : nil } ?? last
        if let now { try continueClosures(from: now) }
        try database.execute(
            sql: "UPDATE meta SET boot = boot + 1, boot_id = ?, clock_offset = ?, trusted_offset = ?",
            arguments: [id, clock.offset, isTrusted ? clock.offset : nil]
        )
    }

    /// If the clock was synchronized during the ended boot, its times remain valid as dates. Otherwise they continue by
    /// the boot clock of this boot, as if the machine had not been off: requests live longer, and none is lost to a
    /// wrong date.
    ///
    /// - Parameters:
    ///   - last: The latest known time of the ended boot; `nil` if it wrote nothing.
    ///   - trusted: The difference between the clocks when the wall clock was last synchronized; `nil` if it was not.
    private func endBoot(_ boot: Int64, at last: Int64?, trusted: Int64?) throws {
        if let trusted {
            try setDates(ofBoot: boot, offset: trusted)
        } else if let last {
            try continueTimes(ofBoot: boot, by: clock.sinceBoot - last)
        }
    }

    /// - Parameter start: The time of the ended boot's clock from which the closures continue now.
    private func continueClosures(from start: Int64) throws {
        let remaining = "max(0, min(closure, boot_not_before - :start))"
        try execute(
            """
            UPDATE lane SET boot_not_before = :sinceBoot + \(remaining), not_before = :now + \(remaining)
            WHERE not_before IS NOT NULL
            """,
            ["start": start, "sinceBoot": clock.sinceBoot, "now": clock.wall.milliseconds]
        )
    }

    private func continueTimes(ofBoot boot: Int64, by shift: Int64) throws {
        for columns in Self.columns {
            try execute(
                """
                UPDATE \(columns.table) SET \(columns.boot) = :next, \(columns.sinceBoot) = \(columns.sinceBoot) + :shift,
                \(columns.wall) = \(columns.sinceBoot) + :shift + :offset WHERE \(columns.boot) = :boot
                """,
                ["next": boot + 1, "shift": shift, "offset": clock.offset, "boot": boot]
            )
        }
    }

    /// Returns the latest time of an ended boot, by its boot clock, at which a row was written; `nil` if there is none.
    private func lastTime(ofBoot boot: Int64) throws -> Int64? {
        try database.row(
            """
            SELECT max(time) AS last FROM (
                SELECT max(boot_expire_at - life) AS time FROM request WHERE boot = :boot
                UNION ALL SELECT max(boot_finished_at) FROM history WHERE finished_boot = :boot
                UNION ALL SELECT max(boot_not_before - closure) FROM lane WHERE not_before IS NOT NULL
            )
            """,
            ["boot": boot]
        )!["last"]
    }
}
