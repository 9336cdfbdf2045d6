internal import NetwatchEventLoop

/// The import of requests.
extension OfflineQueue {
    /// Imports the requests of an export from a file.
    ///
    /// The whole file is checked before anything is changed. Then the requests are added in the order of the file, with
    /// their ids, keys and states. A request that the queue already knows is skipped, so an interrupted import can be
    /// repeated. If its id belongs to another request, it is not imported either: ``ImportResult/conflicts`` names it.
    ///
    /// A request is held if it depends on another one that is neither in the export nor in the queue, or on one that
    /// waits for it in the queue. If requests of the export wait for each other, the export is refused. The import
    /// obeys ``QueueLimits``, except ``QueueLimits/laneShare``. If uploads use the space that the import needs, stalled
    /// uploads are removed as ``appendToBody(_:_:at:for:)`` describes.
    ///
    /// The imported requests have no submitter, because the user ids of another machine may belong to other users here.
    ///
    /// - Parameter path: The path of a regular file, which is read with the permissions of this process.
    /// - Throws: ``QueueError``: `invalidImport` with the line number, `queueFull`, `bodyFileUnusable`, `storeFailed`,
    ///   `spoolFailed`, `insufficientSpace`. If it throws `invalidImport` or `queueFull`, nothing was changed, unless
    ///   the file was changed or the queue became full during the import.
    public nonisolated func importRequests(from path: String) async throws -> ImportResult {
        try await importRequests(from: path, as: .user(nil))
    }

    /// Imports the requests of an export from a file, like ``importRequests(from:)``.
    ///
    /// - Parameter submitters: Who becomes the submitter of the requests.
    package nonisolated func importRequests(
        from path: String,
        as submitters: ImportedSubmitters
    ) async throws -> ImportResult {
        try await importRequests(as: submitters) { files throws(QueueError) in
            do throws(SystemError) { return try files.openExternal(path) } catch {
                throw .unusable(path, error)
            }
        }
    }

    /// Imports the requests of an export that was uploaded with ``appendToBody(_:_:at:for:)``.
    ///
    /// The import works in the same way as ``importRequests(from:)``. The upload is removed, even if the import fails.
    /// When the import begins, the bytes of the upload stop counting against ``QueueLimits/bytes``.
    ///
    /// - Parameters:
    ///   - id: The id of the upload.
    ///   - size: The number of bytes that were uploaded.
    /// - Throws: The errors of ``importRequests(from:)``, and ``QueueError`` with `unknownStagedBody` or `wrongOffset`.
    ///   After `wrongOffset` the upload is kept.
    public nonisolated func importStaged(_ id: String, size: Int64) async throws -> ImportResult {
        try await importStaged(id, size: size, as: .user(nil))
    }

    /// Imports the requests of an uploaded export, like ``importStaged(_:size:)``.
    ///
    /// - Parameter submitters: Who becomes the submitter of the requests.
    package nonisolated func importStaged(
        _ id: String,
        size: Int64,
        as submitters: ImportedSubmitters
    ) async throws -> ImportResult {
        let body = try await staged.finish(id, size: size).body
        do {
            let file = try await opened(body)
            let result = try await importRequests(as: submitters) { _ throws(QueueError) in file }
            await store.spool.remove([body.name])
            return result
        } catch {
            await store.spool.remove([body.name])
            throw error
        }
    }

    private nonisolated func opened(_ upload: SpooledBody) async throws(QueueError) -> any SpoolFile {
        do throws(SpooledBodyFault) { return try await store.spool.openUnverified(upload) } catch {
            throw QueueError(.spoolFailed, "the upload cannot be read: \(error)")
        }
    }

    private nonisolated func importRequests(
        as submitters: ImportedSubmitters,
        _ open: @escaping @Sendable (any SpoolFiles) throws(QueueError) -> any SpoolFile
    ) async throws -> ImportResult {
        let file = try await store.spool.openFile(open)
        let importer = Importer(store: store, file: file, submitters: submitters) {
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

    /// Wakes callers that wait for requests, because the import may have replaced these requests. Also wakes the
    /// sweeper, because imported requests may expire soon.
    private func settled(_ error: (any Error)? = nil) {
        if let error { failed(error) }
        recheckCompletions()
        sweeper.shortenPause(to: .zero)
    }
}
