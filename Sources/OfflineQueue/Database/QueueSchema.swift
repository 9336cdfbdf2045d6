internal import Foundation
internal import GRDB

/// The database schema. Each index has exactly the order of the statement that reads it, so that a claim costs the same
/// in an empty queue and in a full one.
enum QueueSchema {
    /// "nwqu". Identifies the database, for `file(1)` and for this library.
    static let applicationID = 0x6e77_7175

    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { database in
            try database.execute(sql: version1)
            try database.execute(sql: "PRAGMA application_id = \(applicationID); PRAGMA user_version = 1;")
        }
        migrator.registerMigration("2") { database in
            try database.execute(sql: version2)
            try rewriteHeaders(database)
            try database.execute(sql: "PRAGMA user_version = 2;")
        }
        migrator.registerMigration("3") { database in
            try database.execute(sql: version3)
            try database.execute(sql: "PRAGMA user_version = 3;")
        }
        migrator.registerMigration("4") { database in
            try database.execute(sql: version4)
            try database.execute(sql: "PRAGMA user_version = 4;")
        }
        return migrator
    }

    /// Converts headers. Version 1 stored header lines as a JSON array of pairs.
    private static func rewriteHeaders(_ database: Database) throws {
        let update = try database.makeStatement(sql: "UPDATE request SET headers = ? WHERE seq = ?")
        for row in try Row.fetchAll(database, sql: "SELECT seq, headers FROM request") {
            let pairs = try JSONDecoder().decode([[String]].self, from: Data((row["headers"] as String).utf8))
            let headers = pairs.map { QueueRequest.Header(name: $0[0], value: $0[1]) }
            try update.execute(arguments: [HeaderText.encode(headers), row["seq"] as Int64])
        }
    }

    /// The columns that `request` and `history` share and that no attempt changes.
    static let fixedContent = """
        seq, id, priority, created_at, life, expire_at, boot, boot_expire_at, maximum_attempts, method, url,
        headers, size, body_bytes, body_file, body_sha256, key_header, key_value, key_quoted, at_most_once, replace_key,
        expectation, timeouts
        """
}
