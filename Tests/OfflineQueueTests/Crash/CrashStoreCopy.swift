internal import Dispatch
internal import Foundation
internal import GRDB
internal import NetwatchTestSupport

@testable internal import OfflineQueue

/// The content of a store after a kill, read from a copy of its files. Opening the store itself would recover its
/// write-ahead log before the next owner does, and closing it would remove the log.
struct CrashStoreCopy: Sendable {
    let rows: [String: CrashLedger.Row]
    /// The result of `PRAGMA integrity_check`: `ok` or its findings. If the database could not be read, the error.
    let integrity: [String]
    /// The names of the files in the spool.
    let spool: Set<String>

    /// Copies and reads a queue's directory, on a thread that may block. The result has no rows if the store was not
    /// created completely yet.
    ///
    /// - Parameter keyFile: The path of the file with the encryption keys; `nil` for a store without encryption.
    static func reading(
        _ directory: String,
        scratch: String,
        keyFile: String? = nil
    ) async throws -> CrashStoreCopy {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(
                    with: Result {
                        let keys = try keyFile.map { try KeyFile(path: $0).keys() }
                        return try CrashStoreCopy(directory, scratch: scratch, keys)
                    }
                )
            }
        }
    }

    private init(_ directory: String, scratch: String, _ keys: KeyRing?) throws {
        let files = FileManager.default
        let copy = try ScratchDirectory(in: scratch)
        // The index of the log (`-shm`) is not copied, because SQLite builds it again.
        for name in ["queue.sqlite", "queue.sqlite-wal"]
        where files.fileExists(atPath: "\(directory)/\(name)") {
            try files.copyItem(atPath: "\(directory)/\(name)", toPath: copy.file(name))
        }
        let names = try? files.contentsOfDirectory(atPath: "\(directory)/spool")
        spool = Set(names ?? [])
        do {
            (rows, integrity) = try Self.read(copy.file("queue.sqlite"), keys)
        } catch let error as DatabaseError {
            (rows, integrity) = ([:], [error.description])
        }
    }

    private static func read(_ path: String, _ keys: KeyRing?) throws -> ([String: CrashLedger.Row], [String])
    {
        let database = try DatabaseQueue(path: path)
        let content = try database.read { database in
            (try Self.rows(database, keys), try String.fetchAll(database, sql: "PRAGMA integrity_check"))
        }
        try database.close()
        return content
    }

    private static func rows(_ database: Database, _ keys: KeyRing?) throws -> [String: CrashLedger.Row] {
        // A process that was killed while it created the store has accepted no request.
        guard try QueueSchema.migrator.hasCompletedMigrations(database) else { return [:] }
        var rows: [String: CrashLedger.Row] = [:]
        for table in ["history", "request"] {
            for row in try database.rows("SELECT * FROM \(table)") {
                let content = try RequestContent(row.opened(by: Sealer(keys: keys, lastKeyID: nil)))
                rows[try row["id"]] = CrashLedger.Row(
                    state: try row["state"],
                    key: content.key?.value,
                    bodyFile: try row["body_file"]
                )
            }
        }
        return rows
    }
}
