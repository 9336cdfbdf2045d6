internal import FoundationEssentials
internal import GRDB
internal import Glibc
internal import NetwatchEventLoop
internal import OfflineQueue
internal import Synchronization

/// The history of the watched hosts, in a separate database.
///
/// Each bucket is written once a minute, so a crash loses at most a minute. Methods can be called from any thread.
package final class HostHistory: Sendable {
    /// How long outages and the buckets of days are kept: 365 days, the longest time that `netwatch history` shows.
    package static let defaultRetention = Duration.seconds(365 * 86_400)
    /// At least the 30 days of the longest uptime that the page shows.
    package static let acceptedRetention: ClosedRange<Duration> =
        .seconds(30 * 86_400)...(.seconds(366 * 86_400))

    private let path: String
    /// How long outages and the buckets of days are kept, in seconds.
    private let retention: Atomic<Int64>
    private let isSynchronized: @Sendable () -> Bool?
    private let database: DatabaseQueue

    /// Opens the database, or creates it with mode 0600, regardless of the umask.
    ///
    /// - Parameters:
    ///   - retention: How long outages and the buckets of days are kept. Default 365 days.
    ///   - bootID: The kernel's id of this boot, or `nil` if it is not known. Times of the boot clock in the file are used
    ///     only within the boot in which they were written. Default: the system's id.
    ///   - isSynchronized: Returns whether the wall clock is synchronized. An unknown state, `nil`, counts as no.
    ///     Default: what the kernel reports.
    /// - Throws: ``HistoryFault`` if the file cannot be used, or another version of netwatch has written it.
    package init(
        path: String,
        retention: Duration = HostHistory.defaultRetention,
        bootID: String? = BootID.current,
        isSynchronized: @escaping @Sendable () -> Bool? = StoreClock.system.isSynchronized
    ) throws {
        self.path = path
        self.isSynchronized = isSynchronized
        self.retention = Atomic(retention.components.seconds)
        do {
            database = try Self.open(path)
            try database.write { try Self.forgetBootTimes(unlessOf: bootID ?? "", $0) }
        } catch {
            throw HistoryFault(path, error, isOpening: true)
        }
    }

    /// Replaces how long outages and the buckets of days are kept, from the next removal on.
    package func use(retention: Duration) {
        self.retention.store(retention.components.seconds, ordering: .relaxed)
    }

    private static func open(_ path: String) throws -> DatabaseQueue {
        makePrivate(path)
        var configuration = Configuration()
        configuration.label = "history"
        configuration.foreignKeysEnabled = true
        configuration.prepareDatabase { database in
            // A lost minute is acceptable, so commits are not synced, except what hooks have reported. SQLite
            // checkpoints the log at about 4 MiB. It is longer only after another process has read for a long time.
            try database.execute(
                sql: """
                    PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = \(4 << 20)
                    """
            )
        }
        let database = try DatabaseQueue(path: path, configuration: configuration)
        guard try database.read({ try !HistorySchema.migrator.hasBeenSuperseded($0) }) else {
            let writer = "a newer or a development version of netwatch has written it"
            throw DatabaseError(message: writer + HistoryFault.advice)
        }
        try HistorySchema.migrator.migrate(database)
        return database
    }

    /// Creates the file with mode 0600 if it is missing, regardless of the umask, and gives existing files this mode.
    /// SQLite would create the file with mode 0644 less the umask, and creates the other files with the mode of the
    /// first. SQLite also reports the error of a file that cannot be used.
    private static func makePrivate(_ path: String) {
        let file = Glibc.open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        if file >= 0 { Glibc.close(file) }
        for suffix in ["", "-wal", "-shm"] { chmod(path + suffix, 0o600) }
    }

    package func close() throws {
        try database.close()
    }

    func read<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws
        -> Value
    {
        try await reportingFaults { try await database.read(body) }
    }

    func write<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws
        -> Value
    {
        try await reportingFaults { try await database.write(body) }
    }

    /// Writes in one transaction, which is on the disk when this function returns. So are all earlier ones.
    func writeDurably(_ body: @escaping @Sendable (Database) throws -> Void) async throws {
        try await reportingFaults {
            try await database.writeWithoutTransaction { database in
                try database.execute(sql: "PRAGMA synchronous = FULL")
                defer { try? database.execute(sql: "PRAGMA synchronous = NORMAL") }
                try database.inTransaction {
                    try body(database)
                    return .commit
                }
            }
        }
    }

    /// Calls `body`, and throws its errors of the database as ``HistoryFault``.
    private func reportingFaults<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch let error as DatabaseError {
            throw HistoryFault(path, error)
        }
    }

    // MARK: Writing

    /// Writes a batch in one transaction.
    ///
    /// - Parameter now: The current time.
    package func write(_ batch: HistoryBatch, now: HostTracker.Moment) async throws {
        try await write { database in
            let clock = try HistoryClock(at: now, database)
            for table in OutageTable.allCases { try table.restateStarts(at: now, database) }
            for event in batch.outages { try Self.write(event, now: now, clock, database) }
            var ids: [String: Int64] = [:]
            for (key, bucket) in batch.buckets {
                let id = try ids[key.host] ?? Self.id(of: key.host, database)
                ids[key.host] = id
                try Self.add(bucket, key, to: id, clock, database)
            }
            try database.execute(
                sql: "UPDATE meta SET written_at = ?, written_boot = ?, clock = ?",
                arguments: [now.wall, now.boot.nanoseconds, clock.now]
            )
        }
    }

    static func id(of host: String, _ database: Database) throws -> Int64 {
        try database.execute(sql: "INSERT OR IGNORE INTO host (name) VALUES (?)", arguments: [host])
        return try Int64.fetchOne(database, sql: "SELECT id FROM host WHERE name = ?", arguments: [host]) ?? 0
    }

    private static func add(
        _ bucket: HistoryBucket,
        _ key: HistoryBatch.Key,
        to host: Int64,
        _ clock: HistoryClock,
        _ database: Database
    ) throws {
        // Preparing the statements would take most of the time: a batch has three buckets for each host.
        let reading = try database.cachedStatement(
            sql: "SELECT * FROM bucket WHERE host_id = ? AND tier = ? AND start = ?"
        )
        let writing = try database.cachedStatement(
            sql: """
                INSERT OR REPLACE INTO bucket
                    (host_id, tier, start, up, remote, local, probes, failures, latencies, clock)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """
        )
        let arguments: StatementArguments = [host, key.tier.rawValue, key.start]
        var sum = try Row.fetchOne(reading, arguments: arguments).map(HistoryBucket.init) ?? HistoryBucket()
        sum.add(bucket)
        try writing.execute(
            arguments: arguments
                + [sum.up, sum.remote, sum.local, sum.probes, sum.failures, sum.latencies.stored, clock.now]
        )
    }

    /// Removes what is older than its retention, and hosts without any history. ``HistoryClock`` decides about the age.
    package func removeOld(now: HostTracker.Moment) async throws {
        let retention = retention.load(ordering: .relaxed)
        let wall = isSynchronized() == true ? now.wall : nil
        try await write { database in
            let clock = try HistoryClock(at: now, database)
            for tier in HistoryTier.allCases {
                try clock.deleteOld(
                    from: "bucket",
                    where: "tier = \(tier.rawValue)",
                    date: "start * 1000",
                    retention: tier.retention ?? retention,
                    wall: wall,
                    database
                )
            }
            try clock.deleteOld(
                from: "outage",
                where: "ended_at IS NOT NULL",
                date: "ended_at",
                retention: retention,
                wall: wall,
                database
            )
            try database.execute(
                sql: """
                    DELETE FROM host WHERE id NOT IN (SELECT host_id FROM bucket)
                    AND id NOT IN (SELECT host_id FROM outage)
                    """
            )
        }
    }

    // MARK: Reading

    /// Returns the buckets of a host from a time on, by their start; both in seconds since 1970.
    package func buckets(of host: String, _ tier: HistoryTier, since: Int64) async throws -> [Int64:
        HistoryBucket]
    {
        try await read { database in
            let rows = try Row.fetchAll(
                database,
                sql: """
                    SELECT bucket.* FROM bucket JOIN host ON host.id = host_id
                    WHERE name = ? AND tier = ? AND start >= ?
                    """,
                arguments: [host, tier.rawValue, since]
            )
            return Dictionary(rows.map { ($0["start"], HistoryBucket($0)) }) { first, _ in first }
        }
    }

    /// Returns the sum of the buckets whose start is in a range, in seconds since 1970, by host. The sums contain no
    /// latencies.
    package func sums(_ tier: HistoryTier, in range: ClosedRange<Int64>) async throws -> [String:
        HistoryBucket]
    {
        try await read { database in
            let rows = try Row.fetchAll(
                database,
                sql: """
                    SELECT name, sum(up) AS up, sum(remote) AS remote, sum(local) AS local, sum(probes) AS probes,
                        sum(failures) AS failures, '' AS latencies
                    FROM host CROSS JOIN bucket ON host_id = host.id
                    WHERE tier = ? AND start BETWEEN ? AND ? GROUP BY name
                    """,
                arguments: [tier.rawValue, range.lowerBound, range.upperBound]
            )
            return Dictionary(rows.map { ($0["name"], HistoryBucket($0)) }) { first, _ in first }
        }
    }
}

extension HistoryBucket {
    fileprivate init(_ row: Row) {
        up = row["up"]
        remote = row["remote"]
        local = row["local"]
        probes = row["probes"]
        failures = row["failures"]
        latencies = LatencyHistogram(stored: row["latencies"])
    }
}

/// What hooks have reported. The history keeps it so that a restart of the service neither loses nor repeats a message.
extension HostHistory {
    /// A message of a hook that is on its way to the queue.
    struct HookMessageRecord: Hashable, Sendable {
        /// The id of the request that sends the message.
        let id: String
        /// The key of the hook; see ``Hook/keys(of:)``.
        let hook: String
        let body: Data
    }

    /// What a hook has reported in one flush.
    struct HookReport: Sendable {
        /// The key of the hook.
        let hook: String
        /// The outage of each host whose beginning the hook has reported; `nil` if it has reported the end.
        let outages: [(host: String, outage: HostTracker.Outage?)]
        /// The messages, which are recorded until the queue has stored them.
        let messages: [HookMessageRecord]
    }

    /// Records a report in one transaction, which is on the disk when this function returns.
    ///
    /// - Parameter now: The current time.
    func record(_ report: HookReport, now: HostTracker.Moment) async throws {
        try await writeDurably { database in
            for message in report.messages {
                try database.execute(
                    sql: "INSERT INTO hook_message (id, hook, body) VALUES (?, ?, ?)",
                    arguments: [message.id, message.hook, message.body]
                )
            }
            for (host, outage) in report.outages {
                let id = try Self.id(of: host, database)
                try Self.record(outage, ofHost: id, by: report.hook, now: now, database)
            }
        }
    }

    private static func record(
        _ outage: HostTracker.Outage?,
        ofHost id: Int64,
        by hook: String,
        now: HostTracker.Moment,
        _ database: Database
    ) throws {
        guard let outage else {
            return try database.execute(
                sql: "DELETE FROM hook_report WHERE hook = ? AND host_id = ?",
                arguments: [hook, id]
            )
        }
        let start = outage.since
        try database.execute(
            sql: """
                INSERT OR REPLACE INTO hook_report (hook, host_id, cause, started_at, started_boot, start_id)
                VALUES (?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                hook, id, outage.cause.rawValue, start.wall(at: now), start.boot?.nanoseconds, start.id,
            ]
        )
    }

    /// Removes a message that the queue has stored, or refused.
    func removeHookMessage(_ id: String) async throws {
        try await write { database in
            try database.execute(sql: "DELETE FROM hook_message WHERE id = ?", arguments: [id])
        }
    }

    /// Records that a message waits under another id. It keeps its position.
    func changeIDOfHookMessage(_ id: String, to new: String) async throws {
        try await write { database in
            try database.execute(sql: "UPDATE hook_message SET id = ? WHERE id = ?", arguments: [new, id])
        }
    }

    /// Forgets what other hooks have reported.
    func keepHooks(_ keys: Set<String>) async throws {
        try await write { database in
            for table in ["hook_report", "hook_message"] {
                let recorded = try String.fetchAll(database, sql: "SELECT DISTINCT hook FROM \(table)")
                for hook in recorded where !keys.contains(hook) {
                    try database.execute(sql: "DELETE FROM \(table) WHERE hook = ?", arguments: [hook])
                }
            }
        }
    }

    /// Returns the outages that each hook has reported and whose ends it has not, by the key of the hook and by host.
    func hookReports() async throws -> [String: [String: HostTracker.Outage]] {
        try await read { database in
            let rows = try Row.fetchAll(
                database,
                sql: """
                    SELECT hook, name, cause, started_at, started_boot, start_id
                    FROM hook_report JOIN host ON host.id = host_id
                    """
            )
            return rows.reduce(into: [:]) { reports, row in
                let (hook, host): (String, String) = (row["hook"], row["name"])
                reports[hook, default: [:]][host] = HostTracker.Outage(row)
            }
        }
    }

    /// Returns the messages that the queue may not have stored, in their order.
    func hookMessages() async throws -> [HookMessageRecord] {
        try await read { database in
            try Row.fetchAll(database, sql: "SELECT id, hook, body FROM hook_message ORDER BY position").map {
                HookMessageRecord(id: $0["id"], hook: $0["hook"], body: $0["body"])
            }
        }
    }
}
