internal import Foundation
internal import GRDB

/// The database schema. Each index has the order that its statement needs, so that a claim takes the same time in a
/// short queue and in a long one.
enum QueueSchema {
    /// The `application_id` of a queue's database, "nwqu" in ASCII. `file(1)` and this library identify the database by
    /// it.
    static let applicationID = 0x6e77_7175

    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        let versions = [
            version1, version2, version3, version4, version5, version6, version7, version8, version9,
            version10, version11, version12, version13, version14,
        ]
        for (version, sql) in zip(1..., versions) {
            migrator.registerMigration("\(version)") { database in
                try database.execute(sql: sql)
                if version == 1 { try database.execute(sql: "PRAGMA application_id = \(applicationID)") }
                if version == 2 { try rewriteHeaders(database) }
                if version == 11 { try storeWebhookIDs(database) }
                try database.execute(sql: "PRAGMA user_version = \(version)")
            }
        }
        return migrator
    }

    /// Converts the header fields from version 1, which stored them as a JSON array of pairs, to the current format.
    private static func rewriteHeaders(_ database: Database) throws {
        let update = try database.makeStatement(sql: "UPDATE request SET headers = ? WHERE seq = ?")
        for row in try Row.fetchAll(database, sql: "SELECT seq, headers FROM request") {
            let pairs = try JSONDecoder().decode([[String]].self, from: Data((row["headers"] as String).utf8))
            let headers = pairs.map { QueueRequest.Header(name: $0[0], value: $0[1]) }
            try update.execute(arguments: [HeaderText.encode(headers), row["seq"] as Int64])
        }
    }

    /// Stores the ids of the webhooks that earlier versions enqueued. These versions calculated an id again whenever it
    /// was read.
    ///
    /// `webhook_id` stays NULL if the row is damaged, or if no request has the id. The latter is so for a dead request
    /// that was cancelled, because the cancellation changed `finished_at`.
    private static func storeWebhookIDs(_ database: Database) throws {
        let update = try database.makeStatement(
            sql: """
                UPDATE history SET webhook_id = ?1 WHERE position = ?2 AND (
                    EXISTS (SELECT 1 FROM request WHERE id = ?1) OR EXISTS (SELECT 1 FROM history WHERE id = ?1)
                )
                """
        )
        let ended = "SELECT position, created_at, finished_at, id FROM history WHERE on_done IS NOT NULL"
        for row in try database.rows(ended) {
            do {
                try update.execute(arguments: [try webhookID(of: row), try row["position"] as Int64])
            } catch is DamagedColumn {}
        }
    }

    /// Returns the id that earlier versions calculated for the webhook that reports an end.
    ///
    /// - Parameter row: A row of `history`.
    private static func webhookID(of row: StoredRow) throws -> String {
        let (id, position): (String, Int64) = try (row["id"], row["position"])
        let (created, finished): (Int64, Int64) = try (row["created_at"], row["finished_at"])
        return try UUIDv8.make(hashing: "netwatch webhook \(position) \(created) \(finished) \(id)")
    }

    /// The columns of both `request` and `history` that no attempt changes.
    static let fixedContent = """
        seq, id, priority, created_at, life, expire_at, boot, boot_expire_at, maximum_attempts, method, url,
        headers, size, body_bytes, body_file, body_sha256, key_header, key_value, key_quoted, at_most_once, replace_key,
        expectation, timeouts, credential, tag, on_done, webhook_of, constraints,
        key_id, body_key, submitter, inline_sha256
        """
}
