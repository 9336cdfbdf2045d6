internal import NetwatchEventLoop

/// What came of an import.
public struct ImportResult: Hashable, Sendable {
    /// How many requests came into the queue, those that had been given up included.
    public internal(set) var imported = 0
    /// How many the queue knew already; nothing was changed there.
    public internal(set) var known = 0
    /// How many were left out, because a newer request with the same replace key waits.
    public internal(set) var superseded = 0
}

/// What was exported can be brought in.
extension OfflineQueue {
    /// Brings in an export, from a file. All of it is checked before anything is changed; then the requests come in
    /// in the order of the file, with their ids, keys and states. Known ids change nothing, so an import that was
    /// interrupted can be repeated.
    ///
    /// A request that waits for one that neither the export nor the queue has is held. The limits of lanes do not
    /// count here, those of the queue do.
    ///
    /// - Parameter path: A regular file, read with this process's rights.
    /// - Throws: ``QueueError``: `invalidImport`, naming the line, `queueFull`, `bodyFileUnusable`, `storeFailed`,
    ///   `spoolFailed`, `insufficientSpace`. After the first two nothing was changed, unless the queue filled
    ///   meanwhile.
    public nonisolated func importRequests(from path: String) async throws -> ImportResult {
        try await importRequests { files throws(QueueError) in
            do throws(SystemError) { return try files.openForeign(path) } catch {
                throw .unusable(path, error)
            }
        }
    }

    /// Brings in an export that was uploaded by ``appendToBody(_:_:at:for:)``, as ``importRequests(from:)`` does. Until
    /// then it counts against ``QueueLimits/bytes``.
    ///
    /// - Parameters:
    ///   - id: The name that the pieces were uploaded by. It is gone afterwards.
    ///   - size: How many bytes were uploaded.
    /// - Throws: As ``importRequests(from:)``, and `unknownStagedBody`, `wrongOffset`.
    public nonisolated func importStaged(_ id: String, size: Int64) async throws -> ImportResult {
        let body = try await staged.finish(id, size: size)
        do {
            let result = try await importRequests { files throws(QueueError) in
                do throws(SystemError) { return try files.open(body.name) } catch {
                    throw QueueError(reading: error, in: files)
                }
            }
            await store.spool.remove([body.name])
            return result
        } catch {
            await store.spool.remove([body.name])
            throw error
        }
    }

    private nonisolated func importRequests(
        _ open: @escaping @Sendable (any SpoolFiles) throws(QueueError) -> any SpoolFile
    ) async throws -> ImportResult {
        let importer = Importer(store: store, file: try await store.spool.openFile(open))
        do {
            let result = try await importer.run()
            await settled()
            return result
        } catch {
            await settled(error)
            throw error
        }
    }

    /// Others may wait for what the import changed.
    private func settled(_ error: (any Error)? = nil) {
        if let error { failed(error) }
        recheckEnds()
        sweeper.hurry(.zero)
    }
}
