internal import Dispatch

extension OfflineQueue {
    /// Moves a damaged store, including its bodies, to `damaged-TIME` in the queue's directory. Writes what can be read
    /// to an export there, which ``importRequests(from:)`` accepts. Nothing is deleted. The next opening starts with an
    /// empty store.
    ///
    /// - Parameters:
    ///   - directory: The queue's directory. No process may own it.
    ///   - evenIfSound: Whether to move the store even if a full check finds nothing. Default `false`.
    /// - Returns: The moved store; `nil` when the store is sound and was not moved. It can then be opened again, even
    ///   if it was refused as damaged before.
    /// - Throws: ``QueueError``: `alreadyOwned`, `directoryUnusable`, `storeUnavailable`; `storeUnusable` for a
    ///   database of another program or of a newer netwatch, which is not moved; `insufficientSpace` or `spoolFailed`
    ///   when the store was moved, but the export could not be written. In that case call ``salvage(_:)``.
    public static func setAside(directory: String, evenIfSound: Bool = false) async throws -> SetAsideStore? {
        let owned = try await DispatchQueue.global().run { try QueueDirectory(path: directory) }
        defer { owned.release() }
        guard let moved = try await SetAside(owned).run(evenIfSound: evenIfSound) else { return nil }
        return SetAsideStore(
            reason: moved.reason,
            directory: moved.path,
            salvage: try await salvage(moved.path)
        )
    }

    /// Reads a store that was set aside, and writes the data that is readable to a new export in its directory. Can be
    /// called repeatedly.
    ///
    /// - Parameter directory: The directory from the result of ``setAside(directory:evenIfSound:)``.
    /// - Throws: ``QueueError``: `directoryUnusable`, `insufficientSpace`, `spoolFailed`.
    public static func salvage(_ directory: String) async throws -> Salvage {
        try await Salvager(directory: directory).run()
    }
}
