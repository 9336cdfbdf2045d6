internal import GRDB
internal import NetwatchEventLoop

extension HostHistory {
    /// An outage of a host. Times are in milliseconds since 1970.
    package struct Outage: Hashable, Sendable {
        package let host: String
        package let cause: OutageCause
        package let start: Int64
        /// `nil` while the outage lasts.
        package let end: Int64?
        package let reason: String?
    }

    /// The longest time without a service after which an outage is continued: 5 min. After a longer time, the outage
    /// ends at the time of the last write, because nothing was recorded since.
    package static let longestPause: Int64 = 300_000

    // MARK: Writing

    static func write(
        _ event: HistoryBatch.OutageEvent,
        now: HostTracker.Moment,
        _ clock: HistoryClock,
        _ database: Database
    ) throws {
        switch event {
        case .began(let host, let cause, let start, let reason):
            let id = try id(of: host, database)
            let time = start.wall(at: now)
            try end("host_id = ?", [id], at: time, clock, database)
            try database.execute(
                sql: """
                    INSERT INTO outage (host_id, cause, started_at, started_boot, reason, clock)
                    VALUES (?, ?, ?, ?, ?, ?)
                    """,
                arguments: [id, cause.rawValue, time, start.boot?.nanoseconds, reason, clock.now]
            )
            try database.execute(
                sql: """
                    INSERT OR IGNORE INTO hook_outage (host_id, cause, started_at, started_boot, start_id)
                    VALUES (?, ?, ?, ?, ?)
                    """,
                arguments: [id, cause.rawValue, time, start.boot?.nanoseconds, start.id]
            )
        case .ended(let host, let end):
            let id = try id(of: host, database)
            try Self.end("host_id = ?", [id], at: end.wall(at: now), clock, database)
        case .up(let host):
            try database.execute(
                sql: "DELETE FROM hook_outage WHERE host_id = (SELECT id FROM host WHERE name = ?)",
                arguments: [host]
            )
        case .watched(let hosts):
            for table in [OutageTable.hookOutage, .hookReport] { try table.keep(hosts, database) }
        }
    }

    /// Ends the open outages that meet a condition.
    private static func end(
        _ condition: String,
        _ arguments: StatementArguments,
        at time: Int64,
        _ clock: HistoryClock,
        _ database: Database
    ) throws {
        try database.execute(
            sql: """
                UPDATE outage SET ended_at = max(started_at, ?), clock = ? WHERE ended_at IS NULL AND \(condition)
                """,
            arguments: [time, clock.now] + arguments
        )
    }

    /// Forgets times of the boot clock that belong to another boot, or to an unknown one.
    static func forgetBootTimes(unlessOf bootID: String, _ database: Database) throws {
        let written = try String.fetchOne(database, sql: "SELECT boot_id FROM meta")
        if written == bootID, !bootID.isEmpty { return }
        try database.execute(
            sql: """
                UPDATE outage SET started_boot = NULL WHERE ended_at IS NULL;
                UPDATE hook_outage SET started_boot = NULL;
                UPDATE hook_report SET started_boot = NULL;
                """
        )
        try HistoryClock.beginBoot(database)
        try database.execute(sql: "UPDATE meta SET boot_id = ?", arguments: [bootID])
    }

    // MARK: Reading

    /// Returns the current outages by host. Before that, ends the recorded outages if the service has not run for too
    /// long.
    ///
    /// After a reboot, the wall clock measures this time. If it was set back by more, that counts as too long.
    package func resume(now: HostTracker.Moment) async throws -> [String: HostTracker.Outage] {
        try await write { database in
            let written = try Self.lastWrite(database)
            let pause = written.boot.map { (now.boot - $0).milliseconds } ?? now.wall - written.recorded
            if abs(pause) > Self.longestPause {
                try OutageTable.outage.restateStarts(at: now, database)
                // After a reboot, both times of an outage are by the wall clock as it was set before.
                let end = written.boot == nil ? written.recorded : written.wall(at: now)
                try Self.end("true", [], at: end, try HistoryClock(at: now, database), database)
            }
            let rows = try Row.fetchAll(
                database,
                sql: """
                    SELECT name, cause, started_at, started_boot, started_at AS start_id
                    FROM outage JOIN host ON host.id = host_id WHERE ended_at IS NULL
                    """
            )
            let open = rows.map { row -> (String, HostTracker.Outage) in
                (row["name"], HostTracker.Outage(row))
            }
            return Dictionary(open) { first, _ in first }
        }
    }

    private static func lastWrite(_ database: Database) throws -> HostTracker.Start {
        let row = try Row.fetchOne(
            database,
            sql: """
                SELECT written_at AS start_id, written_at AS started_at, written_boot AS started_boot FROM meta
                """
        )
        return row.map(HostTracker.Start.init) ?? HostTracker.Start(id: 0, recorded: 0, boot: nil)
    }

    /// Returns the outages of the hosts that have not been up since, as hooks see them: when the host was first down
    /// for each cause since it was last up. The state of the host may be unknown now.
    package func hookOutages() async throws -> [String: [OutageCause: HostTracker.Start]] {
        try await read { database in
            let rows = try Row.fetchAll(
                database,
                sql: """
                    SELECT name, cause, started_at, started_boot, start_id
                    FROM hook_outage JOIN host ON host.id = host_id
                    """
            )
            return rows.reduce(into: [:]) { outages, row in
                let host: String = row["name"]
                outages[host, default: [:]][OutageCause(row)] = HostTracker.Start(row)
            }
        }
    }

    /// Returns the newest outages that lasted after a time, the newest first.
    ///
    /// - Parameters:
    ///   - host: The name of the host; `nil` for all hosts.
    ///   - since: Milliseconds since 1970.
    ///   - now: The current time. The start of an outage that lasts is by the wall clock as it is set now.
    ///   - limit: The maximum number.
    package func outages(
        of host: String?,
        since: Int64,
        now: HostTracker.Moment,
        limit: Int
    ) async throws -> [Outage] {
        try await read { database in
            let rows = try Row.fetchAll(
                database,
                sql: """
                    SELECT name, cause, started_at, started_boot, started_at AS start_id, ended_at, reason
                    FROM outage JOIN host ON host.id = host_id
                    WHERE ifnull(ended_at, ?) >= ? AND (? IS NULL OR name = ?)
                    ORDER BY started_at DESC LIMIT ?
                    """,
                arguments: [Int64.max, since, host, host, limit]
            )
            return rows.map { row in
                let end: Int64? = row["ended_at"]
                return Outage(
                    host: row["name"],
                    cause: OutageCause(row),
                    start: end == nil ? HostTracker.Start(row).wall(at: now) : row["started_at"],
                    end: end,
                    reason: row["reason"]
                )
            }
        }
    }
}

/// The tables that have the beginnings of outages.
enum OutageTable: String, CaseIterable {
    case outage
    case hookOutage = "hook_outage"
    case hookReport = "hook_report"

    private var condition: String {
        switch self {
        case .outage: "ended_at IS NULL AND started_boot IS NOT NULL"
        case .hookOutage, .hookReport: "started_boot IS NOT NULL"
        }
    }

    /// Deletes the rows of all other hosts.
    func keep(_ hosts: Set<String>, _ database: Database) throws {
        let rows = try Row.fetchAll(
            database,
            sql: "SELECT DISTINCT id, name FROM \(rawValue) JOIN host ON host.id = host_id"
        )
        for row in rows {
            let (id, name): (Int64, String) = (row["id"], row["name"])
            guard !hosts.contains(name) else { continue }
            try database.execute(sql: "DELETE FROM \(rawValue) WHERE host_id = ?", arguments: [id])
        }
    }

    /// Changes the beginnings of the outages that last to the wall clock as it is set now, if it was set.
    ///
    /// So the last write before a reboot has left times that fit together, because after it the times of the boot clock
    /// have no meaning.
    func restateStarts(at now: HostTracker.Moment, _ database: Database) throws {
        let rows = try Row.fetchAll(
            database,
            sql: """
                SELECT host_id, cause, started_at, started_boot, started_at AS start_id
                FROM \(rawValue) WHERE \(condition)
                """
        )
        for row in rows {
            let start = HostTracker.Start(row)
            guard start.wall(at: now) != start.recorded else { continue }
            let (host, cause): (Int64, String) = (row["host_id"], row["cause"])
            try database.execute(
                sql: """
                    UPDATE \(rawValue) SET started_at = ?
                    WHERE \(condition) AND host_id = ? AND cause = ? AND started_at = ?
                    """,
                arguments: [start.wall(at: now), host, cause, start.recorded]
            )
        }
    }
}

extension HostTracker.Start {
    /// - Parameter row: A row with the columns `start_id`, `started_at` and `started_boot`.
    fileprivate init(_ row: Row) {
        let boot: Int64? = row["started_boot"]
        self.init(
            id: row["start_id"],
            recorded: row["started_at"],
            boot: boot.map(BootInstant.init(nanoseconds:))
        )
    }
}

extension HostTracker.Outage {
    /// - Parameter row: A row with the columns `cause`, `start_id`, `started_at` and `started_boot`.
    init(_ row: Row) {
        self.init(cause: OutageCause(row), since: HostTracker.Start(row))
    }
}

extension OutageCause {
    /// - Parameter row: A row with the column `cause`.
    fileprivate init(_ row: Row) {
        self = OutageCause(rawValue: row["cause"]) ?? .remote
    }
}
