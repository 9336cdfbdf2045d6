internal import Dispatch
internal import Glibc

extension OfflineQueue {
    /// Checks the whole queue without changing it or delaying writers.
    ///
    /// It checks the structure of the database, the stored counts of requests and bytes, each unfinished or dead
    /// request, and the complete content of its body. Encrypted requests are decrypted. Without their key, only the
    /// existence and the size of their bodies are checked.
    ///
    /// A body is checked by its SHA-256. If the request is not encrypted, the SHA-256 reveals faults of the disk, but not
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

extension OfflineQueue {
    /// Moves a damaged store away and exports its readable requests.
    ///
    /// ```swift
    /// if let moved = try await OfflineQueue.setAside(directory: "/var/lib/myapp/queue") {
    ///     let queue = try await OfflineQueue(configuration: .init(directory: "/var/lib/myapp/queue"))
    ///     let result = try await queue.importRequests(from: moved.salvage.path)
    ///     print(moved.reason, result)
    /// }
    /// ```
    ///
    /// The database and the bodies are moved to a new directory `damaged-TIME` in the queue's directory. The export is
    /// written there, too; ``importRequests(from:)`` accepts it. Nothing is deleted. When the queue is opened the next
    /// time, it has an empty store.
    ///
    /// Rows that SQLite cannot find, for example because the first page is damaged, are read from the pages directly. For
    /// this, the file system needs as much free space as the database has. A request is exported as held if a part of the
    /// database that decides about it is lost: its lane, its dependencies, or whether it has ended.
    ///
    /// A missing database is damage, too: the remaining files are moved, and the export contains only the requests of a
    /// log that contains the whole database.
    ///
    /// - Parameters:
    ///   - directory: The queue's directory. No queue may have it open.
    ///   - evenIfSound: Whether to move the store even if a full check finds no damage. Default `false`.
    ///   - encryptionKeyFile: The path of the keys of an encrypted queue. Default `nil`: encrypted requests are left
    ///     out of the export, and stay encrypted in the moved store. With the keys, the export contains them as
    ///     plaintext.
    /// - Returns: The moved store. `nil` if the check found no damage. The store was then not moved, and the queue can
    ///   be opened again, even if opening it failed before because of damage.
    /// - Throws: ``QueueError``:
    ///   - `alreadyOwned`, `directoryUnusable`, `storeUnavailable`;
    ///   - `storeUnusable` for a database of another program or of a newer netwatch, which is not moved;
    ///   - `encryptionKeyUnusable` if the key file cannot be used, before anything is moved;
    ///   - `insufficientSpace`, `spoolFailed` if the store was moved, but the export could not be written. In that case
    ///     call ``salvage(_:encryptionKeyFile:)``.
    public static func setAside(
        directory: String,
        evenIfSound: Bool = false,
        encryptionKeyFile: String? = nil
    ) async throws -> SetAsideStore? {
        let keys = try await keys(in: encryptionKeyFile)
        let owned = try await DispatchQueue.global().run {
            try QueueDirectory(path: directory, allowsLostDatabase: true)
        }
        defer { owned.release() }
        guard let moved = try await SetAside(owned).run(evenIfSound: evenIfSound) else { return nil }
        return SetAsideStore(
            reason: moved.reason,
            directory: moved.path,
            salvage: try await Salvager(directory: moved.path, keys: keys).run()
        )
    }

    /// Exports the readable requests of a store that was set aside.
    ///
    /// Each call writes a new export into the directory of that store.
    ///
    /// - Parameters:
    ///   - directory: The directory that the store was moved to: ``SetAsideStore/directory``.
    ///   - encryptionKeyFile: The path of the keys of an encrypted queue, as in
    ///     ``setAside(directory:evenIfSound:encryptionKeyFile:)``. Default `nil`.
    /// - Throws: ``QueueError``: `directoryUnusable`, `insufficientSpace`, `spoolFailed`, `encryptionKeyUnusable`.
    public static func salvage(_ directory: String, encryptionKeyFile: String? = nil) async throws -> Salvage
    {
        try await Salvager(directory: directory, keys: keys(in: encryptionKeyFile)).run()
    }

    static func keys(in path: String?) async throws -> KeyRing? {
        guard let path else { return nil }
        return try await DispatchQueue.global().run { () throws(QueueError) in try KeyFile(path: path).keys()
        }
    }
}
