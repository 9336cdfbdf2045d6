internal import Dispatch
internal import Glibc

extension OfflineQueue {
    /// Returns whether a directory has no database file although it contains the spool or the log of a queue. Such a
    /// directory cannot be opened, because a new database would hide the loss of the requests. Blocks.
    ///
    /// - Parameter path: The queue's directory.
    package static func hasLostDatabase(directory path: String) -> Bool {
        QueueDirectory.hasLostDatabase(path)
    }

    /// Checks the log, the structure and the counters of a store that no process has open, like
    /// ``setAside(directory:evenIfSound:encryptionKeyFile:)``. Changes no data and no permissions.
    ///
    /// - Parameters:
    ///   - path: The queue's directory, which must exist.
    ///   - limits: The limits of the queue, which determine whether the disk is full.
    ///   - encryptionKeyFile: The path of the keys of an encrypted queue, which are checked, too. `nil` for none.
    /// - Throws: ``QueueError``: `alreadyOwned`, `directoryUnusable`, `storeUnavailable`, `storeUnusable` for a
    ///   database of another program or of a newer netwatch, `encryptionKeyUnusable`.
    package static func examineStore(
        directory path: String,
        limits: QueueLimits,
        encryptionKeyFile: String?
    ) async throws -> StoreExamination {
        _ = try await keys(in: encryptionKeyFile)
        let directory = try await DispatchQueue.global().run { () throws(QueueError) in
            try QueueDirectory(existing: path)
        }
        defer { directory.release() }
        let (isNew, noted) = await DispatchQueue.global().run {
            (access(directory.databasePath, F_OK) != 0, directory.damage.text)
        }
        var damage = noted
        if damage == nil, !isNew { damage = try await SetAside(directory).diagnosis() }
        return await DispatchQueue.global().run { [damage] in
            let space = FileSystem.space(at: directory.path)
            return StoreExamination(of: directory, damage: damage, limits: limits, space: space)
        }
    }
}
