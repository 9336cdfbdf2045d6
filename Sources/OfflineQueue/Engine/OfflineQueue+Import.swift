internal import NetwatchEventLoop

/// Import of requests.
extension OfflineQueue {
    /// Imports an export from a file. The whole file is checked before anything is changed. Then the requests are added
    /// in the order of the file, with their ids, keys and states. Known ids change nothing, so an interrupted import
    /// can be repeated.
    ///
    /// A request is held if it depends on one that is neither in the export nor in the queue. The limits of the queue
    /// apply, those of the lanes do not. Uploads that no request uses yet take room; stalled ones are removed as in
    /// ``appendToBody(_:_:at:for:)``.
    ///
    /// - Parameter path: A regular file, read with this process's permissions.
    /// - Throws: ``QueueError``: `invalidImport` with the line number, `queueFull`, `bodyFileUnusable`, `storeFailed`,
    ///   `spoolFailed`, `insufficientSpace`. After the first two nothing was changed, unless the queue became full
    ///   during the import.
    public nonisolated func importRequests(from path: String) async throws -> ImportResult {
        try await importRequests { files throws(QueueError) in
            do throws(SystemError) { return try files.openExternal(path) } catch {
                throw .unusable(path, error)
            }
        }
    }

    /// Imports an export that was uploaded with ``appendToBody(_:_:at:for:)``, in the same way as
    /// ``importRequests(from:)``. The upload counts against ``QueueLimits/bytes`` until then.
    ///
    /// - Parameters:
    ///   - id: The id of the upload. It is removed.
    ///   - size: The number of bytes that were uploaded.
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
        let importer = Importer(store: store, file: try await store.spool.openFile(open)) {
            try await self.removeStalledBodies(toFit: $0)
        }
        do {
            let result = try await importer.run()
            await settled()
            return result
        } catch {
            await settled(error)
            throw error
        }
    }

    /// Notifies callers that wait for requests that the import may have changed, and runs the sweeper soon.
    private func settled(_ error: (any Error)? = nil) {
        if let error { failed(error) }
        recheckCompletions()
        sweeper.shortenPause(to: .zero)
    }
}
