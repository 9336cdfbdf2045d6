internal import Dispatch

extension OfflineQueue {
    /// Checks the whole queue: the structure of the database, the counts that the limits use, each request, and each
    /// spool file, which is read completely. Changes nothing and does not delay writers. Throws `CancellationError`
    /// when its task is cancelled or the queue stops.
    ///
    /// - Throws: ``QueueError`` of the store.
    public nonisolated func verify() async throws -> QueueVerification {
        try await store.archive.inspect()
    }

    /// Checks the log of a queue that no process has open. Returns without a check if a process has it open. Opening
    /// the queue would drop unreadable commits and continue.
    ///
    /// - Parameter directory: The queue's directory.
    /// - Throws: ``QueueError``: `directoryUnusable`, `storeUnusable` when the log is damaged, `storeUnavailable`.
    package static func checkLeftoverLog(directory path: String) async throws {
        try await DispatchQueue.global().run {
            let directory: QueueDirectory
            do throws(QueueError) { directory = try QueueDirectory(path: path) } catch {
                if error.code == .alreadyOwned { return }
                throw error
            }
            defer { directory.release() }
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
