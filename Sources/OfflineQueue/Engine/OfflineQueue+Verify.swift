internal import Dispatch

extension OfflineQueue {
    /// Checks the whole queue without changing it or delaying writers.
    ///
    /// It checks the structure of the database, the stored counts of requests and bytes, each unfinished or dead
    /// request, and the complete content of its body. Encrypted requests are decrypted. Without their key, only the
    /// existence and the size of their bodies are checked.
    ///
    /// A body of up to 64 KiB is stored in the database. If it is not encrypted, it is checked by its SHA-256, or only
    /// by its length if an earlier version stored it without a SHA-256. The SHA-256 reveals faults of the disk, but not
    /// deliberate changes: a person who can write to the database can also replace the SHA-256.
    ///
    /// The result replaces the findings of ``scan``.
    ///
    /// - Throws: ``QueueError`` of the store. `CancellationError` if the task is cancelled or the queue stops.
    public nonisolated func verify() async throws -> QueueVerification {
        let report = try await store.archive.inspect()
        scanner.replaceFindings(with: report)
        return report
    }

    /// Checks the structure of the database for a limited time, without its rows and the bodies in the spool. Delays no
    /// writer.
    ///
    /// - Parameter limit: The time after which the check ends.
    /// - Throws: ``QueueError`` of the store. `CancellationError` if the queue stops.
    package nonisolated func quickCheck(within limit: Duration) async throws -> QuickCheck {
        try await store.archive.quickCheck(within: limit)
    }

    /// What the scans of the store have found, also those before the last restart; see ``Configuration/scanInterval``.
    public nonisolated var scan: QueueScan { scanner.scan }

    /// Checks the database's log before a queue is opened, because opening the queue would drop damaged commits.
    ///
    /// Does nothing if a process has the queue open.
    ///
    /// - Parameter path: The queue's directory.
    /// - Throws: ``QueueError``: `directoryUnusable`, `storeUnusable` if the log is damaged, `storeUnavailable`.
    package static func checkLeftoverLog(directory path: String) async throws {
        try await DispatchQueue.global().run {
            let directory: QueueDirectory
            do throws(QueueError) { directory = try QueueDirectory(path: path) } catch {
                if error.code == .alreadyOwned { return }
                throw error
            }
            defer { directory.release() }
            // Damage is recorded. Opening the queue reports it.
            if directory.isDatabaseLost { return }
            do throws(StoreFault) {
                if let damage = try QueueDatabase.leftoverLog(of: directory.databasePath)?.damage {
                    throw .damaged(damage)
                }
            } catch {
                throw error.error(path: directory.databasePath)
            }
        }
    }
}
