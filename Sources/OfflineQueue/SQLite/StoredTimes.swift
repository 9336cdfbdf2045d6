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

        /// The condition that a row belongs to a boot. Damaged times stay as they are, because a sum would overflow.
        var areOfBoot: String {
            let farthest = Timestamp.farthest
            return """
                \(boot) = :boot AND \(sinceBoot) BETWEEN \(-farthest) AND \(farthest)
                AND \(wall) BETWEEN \(-farthest) AND \(farthest)
                """
        }
    }

    private static let columns = [
        Columns(table: "request", boot: "boot", sinceBoot: "boot_expire_at", wall: "expire_at"),
        Columns(table: "history", boot: "finished_boot", sinceBoot: "boot_finished_at", wall: "finished_at"),
    ]

    /// The columns with dates only. Those in the past are of a boot if the wall clock showed them during it.
    private static let dates = [
        ("request", "created_at"), ("request", "conflict_at"), ("request", "busy_until"),
        ("history", "created_at"), ("attempt", "started_at"),
    ]

    private func execute(_ sql: String, _ arguments: StatementArguments) throws {
        try database.cachedStatement(sql: sql).execute(arguments: arguments)
    }

    /// Moves the dates of everything that a boot has stored.
    ///
    /// - Parameters:
    ///   - offset: The wall clock minus the boot clock, to which the dates are adjusted.
    ///   - last: The latest time of the boot, by its boot clock.
    private func moveDates(ofBoot boot: Int64, since offset: Int64, until last: Int64, by step: Int64) throws
    {
        for columns in Self.columns {
            try execute(
                "UPDATE \(columns.table) SET \(columns.wall) = \(columns.wall) + :step WHERE \(columns.areOfBoot)",
                ["step": step, "boot": boot]
            )
        }
        let latest = offset + last
        for (table, column) in Self.dates {
            let end =
                column == "busy_until"
                ? (Timestamp(milliseconds: latest) + AttemptTimeouts.longest).milliseconds : latest
            try execute(
                "UPDATE \(table) SET \(column) = \(column) + ? WHERE \(column) BETWEEN ? AND ?",
                [step, offset, end]
            )
        }
    }
}

// MARK: - Within a boot

extension StoredTimes {
    /// Adjusts the stored dates if the wall clock was set, and records whether it is synchronized.
    ///
    /// - Returns: By how many milliseconds the clock was set; `nil` if it was not.
    func followClock(boot: Int64) throws -> Int64? {
        let meta = try database.row("SELECT clock_offset, trusted_offset FROM meta")!
        let (known, trusted): (Int64, Int64?) = try (meta["clock_offset"], meta["trusted_offset"])
        if isTrusted, trusted.map({ Self.isStep(from: $0, to: clock.offset) }) ?? true {
            try execute("UPDATE meta SET trusted_offset = ?", [clock.offset])
        }
        guard Self.isStep(from: known, to: clock.offset) else { return nil }
        try execute("UPDATE meta SET clock_offset = ?", [clock.offset])
        try execute(
            "UPDATE lane SET not_before = boot_not_before + ? WHERE not_before IS NOT NULL",
            [clock.offset]
        )
        try moveDates(ofBoot: boot, since: known, until: clock.sinceBoot, by: clock.offset - known)
        return clock.offset - known
    }

    /// Returns whether the wall clock was set. A difference of up to 1 s can result from slewing, and is ignored.
    static func isStep(from old: Int64, to new: Int64) -> Bool { abs(old - new) > 1000 }
}

// MARK: - After a boot

extension StoredTimes {
    /// Records the boot in which the store is opened. If it is another one than before, gives the times of the ended
    /// boot their meaning in this one.
    func begin(boot id: String) throws {
        let meta = try database.row("SELECT boot_id, boot, clock_offset, trusted_offset FROM meta")!
        guard try meta["boot_id"] != id else { return }
        let (boot, offset): (Int64, Int64) = try (meta["boot"], meta["clock_offset"])
        let trusted: Int64? = try meta["trusted_offset"]
        let last = try lastTime(ofBoot: boot, offset: offset)
        // Boot 0 stands for times that are known only as dates: those of imports.
        if boot > 0 { try endBoot(boot, at: last, offset: offset, trusted: trusted) }
        // The time of the ended boot's clock that corresponds to now. If it is not known for how long the machine was
        // off, a closure does not continue meanwhile.
        try continueClosures(from: trusted.flatMap { isTrusted ? clock.wall.milliseconds - $0 : nil } ?? last)
        try execute(
            "UPDATE meta SET boot = boot + 1, boot_id = ?, clock_offset = ?, trusted_offset = ?",
            [id, clock.offset, isTrusted ? clock.offset : nil]
        )
    }

    /// If the clock was synchronized during the ended boot, its times remain valid as dates. Otherwise they continue by
    /// the boot clock of this boot, as if the machine had not been off: requests live longer, and none is lost to a
    /// wrong date.
    ///
    /// - Parameters:
    ///   - last: The latest known time of the ended boot; 0 if none is known.
    ///   - offset: The difference between the clocks at the end of the boot.
    ///   - trusted: The same difference when the wall clock was last synchronized; `nil` if it was not.
    private func endBoot(_ boot: Int64, at last: Int64, offset: Int64, trusted: Int64?) throws {
        if let trusted {
            guard Self.isStep(from: offset, to: trusted) else { return }
            try moveDates(ofBoot: boot, since: offset, until: last, by: trusted - offset)
        } else {
            let shift = clock.sinceBoot - last
            try moveDates(ofBoot: boot, since: offset, until: last, by: shift + clock.offset - offset)
            try continueTimes(ofBoot: boot, by: shift)
        }
    }

    private func continueTimes(ofBoot boot: Int64, by shift: Int64) throws {
        for columns in Self.columns {
            try execute(
                """
                UPDATE \(columns.table) SET \(columns.boot) = :next, \(columns.sinceBoot) = \(columns.sinceBoot) + :shift
                WHERE \(columns.areOfBoot)
                """,
                ["next": boot + 1, "shift": shift, "boot": boot]
            )
        }
    }

    /// - Parameter start: The time of the ended boot's clock from which the closures continue now.
    private func continueClosures(from start: Int64) throws {
        let remaining = "max(0, min(closure, boot_not_before - :start))"
        try execute(
            """
            UPDATE lane SET boot_not_before = :sinceBoot + \(remaining), not_before = :now + \(remaining),
            closure = \(remaining) WHERE not_before IS NOT NULL
            """,
            ["start": start, "sinceBoot": clock.sinceBoot, "now": clock.wall.milliseconds]
        )
    }

    /// Returns the latest time of an ended boot, by its boot clock, at which a request was created or ended, or a closure
    /// began. Returns 0, the start of the boot, if there is none.
    ///
    /// - Parameter offset: The difference between the clocks at the end of the boot.
    private func lastTime(ofBoot boot: Int64, offset: Int64) throws -> Int64 {
        // A time that is too late would shorten the lives of all requests of the boot. Each row therefore counts with
        // the earlier one of its times by the two clocks, so that one damaged value does no harm. A time before the boot
        // is one that an even earlier boot has left. No machine runs for ten years without a reboot, so a later time is
        // damage.
        try database.row(
            """
            SELECT ifnull(max(time), 0) AS last FROM (
                SELECT min(boot_expire_at - life, created_at - :offset) AS time FROM request WHERE boot = :boot
                UNION ALL SELECT min(boot_finished_at, finished_at - :offset) FROM history
                WHERE finished_boot = :boot
                UNION ALL SELECT min(boot_not_before, not_before - :offset) - closure FROM lane
                WHERE not_before IS NOT NULL
            ) WHERE time BETWEEN 0 AND 316000000000
            """,
            ["boot": boot, "offset": offset]
        )!["last"]
    }
}
