internal import FoundationEssentials
internal import GRDB
internal import Glibc
internal import Synchronization

/// The history of the watched hosts, in a separate database.
///
/// Each bucket is written once a minute, so a crash loses at most a minute. Methods can be called from any thread.
package final class HostHistory: Sendable {
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

    /// How long outages and the buckets of days are kept: 365 days, the longest time that `netwatch history` shows.
    package static let defaultRetention = Duration.seconds(365 * 86_400)
    /// At least the 30 days of the longest uptime that the page shows.
    package static let acceptedRetention: ClosedRange<Duration> =
        .seconds(30 * 86_400)...(.seconds(366 * 86_400))

    private let path: String
    /// How long outages and the buckets of days are kept, in seconds.
    private let retention: Atomic<Int64>
    private let database: DatabaseQueue

    /// Opens the database, or creates it with mode 0600.
    ///
    /// - Parameter retention: How long outages and the buckets of days are kept. Default 365 days.
    /// - Throws: ``HistoryFault`` if the file cannot be used, or belongs to a newer version.
    package init(path: String, retention: Duration = HostHistory.defaultRetention) throws {
        self.path = path
        self.retention = Atomic(retention.components.seconds)
        do {
            database = try Self.open(path)
        } catch {
            throw HistoryFault(path, error, isOpening: true)
        }
    }

    /// Replaces how long outages and the buckets of days are kept, from the next removal on.
    package func use(retention: Duration) {
        self.retention.store(retention.components.seconds, ordering: .relaxed)
    }

    private static func open(_ path: String) throws -> DatabaseQueue {
        // SQLite would create the file with mode 0644.
        let file = Glibc.open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        if file >= 0 { Glibc.close(file) }
        var configuration = Configuration()
        configuration.label = "history"
        configuration.foreignKeysEnabled = true
        configuration.prepareDatabase { database in
            // A lost minute is acceptable, so commits are not synced.
            try database.execute(sql: "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
        }
        let database = try DatabaseQueue(path: path, configuration: configuration)
        guard try database.read({ try !HistorySchema.migrator.hasBeenSuperseded($0) }) else {
            throw DatabaseError(message: "a newer version of netwatch has written it")
        }
        try HistorySchema.migrator.migrate(database)
        return database
    }

    package func close() throws {
        try database.close()
    }

    private func read<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws
        -> Value
    {
        try await reportingFaults { try await database.read(body) }
    }

    private func write<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws
        -> Value
    {
        try await reportingFaults { try await database.write(body) }
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
    /// - Parameter now: Milliseconds since 1970.
    package func write(_ batch: HistoryBatch, now: Int64) async throws {
        try await write { database in
            for event in batch.outages { try Self.write(event, database) }
            var ids: [String: Int64] = [:]
            for (key, bucket) in batch.buckets {
                let id = try ids[key.host] ?? Self.id(of: key.host, database)
                ids[key.host] = id
                try Self.add(bucket, key, to: id, database)
            }
            try database.execute(sql: "UPDATE meta SET written_at = ?", arguments: [now])
        }
    }

    private static func id(of host: String, _ database: Database) throws -> Int64 {
        try database.execute(sql: "INSERT OR IGNORE INTO host (name) VALUES (?)", arguments: [host])
        return try Int64.fetchOne(database, sql: "SELECT id FROM host WHERE name = ?", arguments: [host]) ?? 0
    }

    private static func add(
        _ bucket: HistoryBucket,
        _ key: HistoryBatch.Key,
        to host: Int64,
        _ database: Database
    ) throws {
        // Preparing the statements would take most of the time: a batch has three buckets for each host.
        let reading = try database.cachedStatement(
            sql: "SELECT * FROM bucket WHERE host_id = ? AND tier = ? AND start = ?"
        )
        let writing = try database.cachedStatement(
            sql: """
                INSERT OR REPLACE INTO bucket (host_id, tier, start, up, remote, local, probes, failures, latencies)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                """
        )
        let arguments: StatementArguments = [host, key.tier.rawValue, key.start]
        var sum = try Row.fetchOne(reading, arguments: arguments).map(HistoryBucket.init) ?? HistoryBucket()
        sum.add(bucket)
        try writing.execute(
            arguments: arguments
                + [sum.up, sum.remote, sum.local, sum.probes, sum.failures, sum.latencies.stored]
        )
    }

    private static func write(_ event: HistoryBatch.OutageEvent, _ database: Database) throws {
        switch event {
        case .began(let host, let cause, let start, let reason):
            let id = try id(of: host, database)
            try end(id, at: start, database)
            try database.execute(
                sql: "INSERT INTO outage (host_id, cause, started_at, reason) VALUES (?, ?, ?, ?)",
                arguments: [id, cause.rawValue, start, reason]
            )
            try database.execute(
                sql: "INSERT OR IGNORE INTO hook_outage (host_id, cause, started_at) VALUES (?, ?, ?)",
                arguments: [id, cause.rawValue, start]
            )
        case .ended(let host, let end):
            try Self.end(try id(of: host, database), at: end, database)
        case .reportedUp(let host): try endHookOutage(of: host, database)
        case .watched(let hosts):
            let hooked = try hookOutages(database)
            for host in hooked.keys where !hosts.contains(host) { try endHookOutage(of: host, database) }
        }
    }

    private static func endHookOutage(of host: String, _ database: Database) throws {
        try database.execute(
            sql: "DELETE FROM hook_outage WHERE host_id = (SELECT id FROM host WHERE name = ?)",
            arguments: [host]
        )
    }

    private static func end(_ host: Int64, at time: Int64, _ database: Database) throws {
        try database.execute(
            sql: """
                UPDATE outage SET ended_at = max(started_at, ?) WHERE host_id = ? AND ended_at IS NULL
                """,
            arguments: [time, host]
        )
    }

    /// Removes what is older than its retention, and hosts without any history.
    ///
    /// - Parameter now: Milliseconds since 1970.
    package func removeOld(now: Int64) async throws {
        let retention = retention.load(ordering: .relaxed)
        try await write { database in
            for tier in HistoryTier.allCases {
                try database.execute(
                    sql: "DELETE FROM bucket WHERE tier = ? AND start < ?",
                    arguments: [tier.rawValue, now / 1000 - (tier.retention ?? retention)]
                )
            }
            try database.execute(
                sql: "DELETE FROM outage WHERE ended_at < ?",
                arguments: [now - retention * 1000]
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

    /// Returns the current outages by host. Before that, ends the recorded outages if the service has not run for too
    /// long.
    ///
    /// - Parameter now: Milliseconds since 1970.
    package func resume(now: Int64) async throws -> [String: HostTracker.Outage] {
        try await write { database in
            let written = try Int64.fetchOne(database, sql: "SELECT written_at FROM meta") ?? 0
            if now - written > Self.longestPause {
                try database.execute(
                    sql: "UPDATE outage SET ended_at = max(started_at, ?) WHERE ended_at IS NULL",
                    arguments: [written]
                )
            }
            let open = try Self.outages(database, where: "ended_at IS NULL", [])
            return Dictionary(
                open.map { ($0.host, HostTracker.Outage(cause: $0.cause, since: $0.start)) }
            ) { first, _ in first }
        }
    }

    /// Returns the outages whose end hooks have not reported, by host: when the host was first down for each cause
    /// since it was last up, in milliseconds since 1970. The state of the host may be unknown now.
    package func hookOutages() async throws -> [String: [OutageCause: Int64]] {
        try await read { try Self.hookOutages($0) }
    }

    private static func hookOutages(_ database: Database) throws -> [String: [OutageCause: Int64]] {
        let rows = try Row.fetchAll(
            database,
            sql: "SELECT name, cause, started_at FROM hook_outage JOIN host ON host.id = host_id"
        )
        return rows.reduce(into: [:]) { outages, row in
            let (host, start): (String, Int64) = (row["name"], row["started_at"])
            outages[host, default: [:]][OutageCause(rawValue: row["cause"]) ?? .remote] = start
        }
    }

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

    /// Returns the sum of the buckets from a time on, by host. The sums contain no latencies.
    package func sums(_ tier: HistoryTier, since: Int64) async throws -> [String: HistoryBucket] {
        try await read { database in
            let rows = try Row.fetchAll(
                database,
                sql: """
                    SELECT name, sum(up) AS up, sum(remote) AS remote, sum(local) AS local, sum(probes) AS probes,
                        sum(failures) AS failures, '' AS latencies
                    FROM bucket JOIN host ON host.id = host_id WHERE tier = ? AND start >= ? GROUP BY name
                    """,
                arguments: [tier.rawValue, since]
            )
            return Dictionary(rows.map { ($0["name"], HistoryBucket($0)) }) { first, _ in first }
        }
    }

    /// Returns the newest outages that lasted after a time, the newest first.
    ///
    /// - Parameters:
    ///   - host: The name of the host; `nil` for all hosts.
    ///   - since: Milliseconds since 1970.
    ///   - limit: The maximum number.
    package func outages(of host: String?, since: Int64, limit: Int) async throws -> [Outage] {
        try await read { database in
            try Self.outages(
                database,
                where: "ifnull(ended_at, ?) >= ? AND (? IS NULL OR name = ?)",
                [Int64.max, since, host, host],
                limit: limit
            )
        }
    }

    private static func outages(
        _ database: Database,
        where condition: String,
        _ arguments: StatementArguments,
        limit: Int = 10_000
    ) throws -> [Outage] {
        let sql = """
            SELECT name, cause, started_at, ended_at, reason FROM outage JOIN host ON host.id = host_id
            WHERE \(condition) ORDER BY started_at DESC LIMIT \(limit)
            """
        return try Row.fetchAll(database, sql: sql, arguments: arguments).map { row in
            Outage(
                host: row["name"],
                cause: OutageCause(rawValue: row["cause"]) ?? .remote,
                start: row["started_at"],
                end: row["ended_at"],
                reason: row["reason"]
            )
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
