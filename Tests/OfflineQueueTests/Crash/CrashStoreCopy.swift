internal import Dispatch
internal import Foundation
internal import GRDB
internal import NetwatchTestSupport

/// The content of a store's files, read from a copy. Opening the store itself would repair it before its next owner
/// does, and closing it would empty the WAL.
struct CrashStoreCopy: Sendable {
    let rows: [String: CrashLedger.Row]
    /// `ok`, the findings of `PRAGMA integrity_check`, or the error that prevented reading the database.
    let integrity: [String]
    /// The names of the files in the spool.
    let spool: Set<String>

    /// Copies and reads a queue's directory on a thread that may block. A store that was not created yet has no rows.
    static func reading(_ directory: String, scratch: String) async throws -> CrashStoreCopy {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(with: Result { try CrashStoreCopy(directory, scratch: scratch) })
            }
        }
    }

    private init(_ directory: String, scratch: String) throws {
        let files = FileManager.default
        let copy = try ScratchDirectory(in: scratch)
        // The WAL index is not copied: the first process that opens the store rebuilds it.
        for name in ["queue.sqlite", "queue.sqlite-wal"]
        where files.fileExists(atPath: "\(directory)/\(name)") {
            try files.copyItem(atPath: "\(directory)/\(name)", toPath: copy.file(name))
        }
        let names = try? files.contentsOfDirectory(atPath: "\(directory)/spool")
        spool = Set(names ?? [])
        do {
            (rows, integrity) = try Self.read(copy.file("queue.sqlite"))
        } catch let error as DatabaseError {
            (rows, integrity) = ([:], [error.description])
        }
    }

    private static func read(_ path: String) throws -> ([String: CrashLedger.Row], [String]) {
        let database = try DatabaseQueue(path: path)
        let content = try database.read { database in
            (try Self.rows(database), try String.fetchAll(database, sql: "PRAGMA integrity_check"))
        }
        try database.close()
        return content
    }

    private static func rows(_ database: Database) throws -> [String: CrashLedger.Row] {
        var rows: [String: CrashLedger.Row] = [:]
        for table in ["history", "request"] where try database.tableExists(table) {
            let sql = "SELECT id, state, key_value, body_file FROM \(table)"
            for row in try Row.fetchAll(database, sql: sql) {
                rows[row["id"]] = CrashLedger.Row(
                    state: row["state"],
                    key: row["key_value"],
                    bodyFile: row["body_file"]
                )
            }
        }
        return rows
    }
}
