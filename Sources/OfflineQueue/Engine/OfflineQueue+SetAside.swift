internal import Dispatch

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
