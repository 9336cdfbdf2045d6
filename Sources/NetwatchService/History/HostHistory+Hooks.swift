internal import FoundationEssentials
internal import GRDB
internal import NetwatchEventLoop

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
