public import Foundation
internal import NetwatchEventLoop

/// The export of requests.
extension OfflineQueue {
    /// Returns one page of an export. The queue is not changed.
    ///
    /// An export contains all unfinished requests in the order of acceptance, followed by the requests that were given
    /// up. It consists of all pages and a last line, which ``ExportTrailer/finish()`` returns.
    ///
    /// A request in flight is exported as `pending`, or as `held` if it must not be sent twice. Requests that are
    /// enqueued during the export may be included. Requests that finish during the export may be left out.
    ///
    /// - Parameters:
    ///   - cursor: ``ExportPage/next`` of the previous page. Default `nil`: the first page.
    ///   - includingDead: Whether to include requests that were given up. Default `true`.
    ///   - limit: The approximate size of the page in bytes. Default 1 MiB. The page may exceed it by one request with
    ///     up to 64 KiB of its body.
    /// - Throws: ``QueueError`` of the store.
    public nonisolated func exportPage(
        after cursor: ExportCursor? = nil,
        includingDead: Bool = true,
        limit: Int = 1 << 20
    ) async throws -> ExportPage {
        var page = PageWriter(limit: limit, spool: store.spool)
        if cursor == nil { page.begin(includingDead: includingDead) }
        let next = try await page.fill(
            from: store.archive,
            after: cursor ?? .beginning,
            includingDead: includingDead
        )
        return ExportPage(data: page.data, next: next, leftOut: page.leftOut)
    }

    /// Writes a complete export, page by page.
    ///
    /// - Parameters:
    ///   - includingDead: Whether to include requests that were given up. Default `true`.
    ///   - write: A function that is called with each piece of the export, in order.
    /// - Returns: The requests that could not be exported.
    /// - Throws: ``QueueError`` of the store, and any error that `write` throws.
    public nonisolated func export(
        includingDead: Bool = true,
        to write: (Data) async throws -> Void
    ) async throws -> [ExportPage.LeftOut] {
        var trailer = try ExportTrailer()
        var leftOut: [ExportPage.LeftOut] = []
        var cursor: ExportCursor?
        repeat {
            let page = try await exportPage(after: cursor, includingDead: includingDead)
            trailer.add(page.data)
            try await write(page.data)
            leftOut += page.leftOut
            cursor = page.next
        } while cursor != nil
        try await write(trailer.finish())
        return leftOut
    }
}

extension ExportCursor {
    static let beginning = ExportCursor(part: .waiting, position: 0)

    func nextPart(includingDead: Bool) -> ExportCursor? {
        part == .waiting && includingDead ? ExportCursor(part: .dead, position: 0) : nil
    }
}

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
