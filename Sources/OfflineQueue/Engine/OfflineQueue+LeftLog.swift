internal import Dispatch

extension OfflineQueue {
    /// Checks the log of a queue that no process has open. Returns without a check if a process has it open. Opening
    /// the queue would drop unreadable commits and continue.
    ///
    /// - Parameter directory: The queue's directory.
    /// - Throws: ``QueueError``: `directoryUnusable`, `storeUnusable` when the log is damaged, `storeUnavailable`.
    package static func checkLeftLog(directory path: String) async throws {
        try await DispatchQueue.global().run {
            let directory: QueueDirectory
            do throws(QueueError) { directory = try QueueDirectory(path: path) } catch {
                if error.code == .alreadyOwned { return }
                throw error
            }
            defer { directory.release() }
            do throws(StoreFault) {
                if let damage = try QueueDatabase.logLeft(beside: directory.databasePath)?.damage {
                    throw .damaged(damage)
                }
            } catch {
                throw error.error(path: directory.databasePath)
            }
        }
    }
}
