internal import Dispatch
public import Foundation
internal import NetwatchEventLoop

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

/// Uploads: bodies that clients upload in pieces, before a request or an import uses them.
extension OfflineQueue {
    /// Appends a piece to an upload. A piece at offset 0 starts the upload.
    ///
    /// ```swift
    /// var size: Int64 = 0
    /// while let piece = try file.read(upToCount: 1 << 20), !piece.isEmpty {
    ///     size = try await queue.appendToBody("video-1", piece, at: size)
    /// }
    /// let body = QueueRequest.Body.staged(id: "video-1", size: size)
    /// ```
    ///
    /// There are at most 64 uploads, and their bytes count against ``QueueLimits/bytes``. The queue removes an upload
    /// that has received no piece, not even an empty one, for a certain time:
    /// - ten minutes, normally;
    /// - ten seconds, when one of the two limits is reached and the removal of such uploads frees enough room. The
    ///   upload whose last piece is oldest is removed first.
    ///
    /// - Parameters:
    ///   - id: The id of the upload, chosen by the caller: 1 to 255 bytes of printable ASCII.
    ///   - bytes: The piece.
    ///   - offset: The number of bytes that were appended before.
    ///   - purpose: The purpose of the upload. Only the first piece determines it. Default: the body of a request.
    /// - Returns: The number of bytes uploaded so far.
    /// - Throws: ``QueueError``: `wrongOffset` with the expected offset, `bodyTooLarge`, `tooManyStagedBodies`,
    ///   `queueFull`, `insufficientSpace`, `spoolFailed`, `unknownStagedBody`, `invalidOption` for an invalid id. If
    ///   writing fails, the upload is removed.
    public nonisolated func appendToBody(
        _ id: String,
        _ bytes: Data,
        at offset: Int64,
        for purpose: StagedBodyPurpose = .request
    ) async throws -> Int64 {
        try await appendToBody(id, bytes, at: offset, for: purpose, by: nil)
    }

    /// Appends a piece to an upload of a user, like ``appendToBody(_:_:at:for:)``.
    ///
    /// - Throws: Also `notSubmitter` and `quotaExceeded`.
    package nonisolated func appendToBody(
        _ id: String,
        _ bytes: Data,
        at offset: Int64,
        for purpose: StagedBodyPurpose,
        by submitter: Submitter?
    ) async throws -> Int64 {
        try RequestChecks.checkPrintable(id, "body's id")
        try await freeCapacity(for: Int64(bytes.count), of: id)
        if offset == 0 { try await staged.begin(id, limit: purpose.limit, by: submitter) }
        return try await staged.append(bytes, to: id, at: offset, by: submitter)
    }

    private nonisolated func freeCapacity(for count: Int64, of id: String) async throws {
        guard count > 0, try await !removeStalledBodies(toFit: count, except: id) else { return }
        let (used, room) = (await staged.byteCount, try await store.archive.availableCapacity().bytes)
        throw QueueError(
            .queueFull,
            "the queue has no room for \(count) more bytes: its requests leave \(room) bytes free, "
                + "and uploads already use \(used) of them"
        )
    }

    /// Removes stalled uploads, which received no piece for ten seconds, if `count` more bytes then fit into the queue.
    ///
    /// - Parameters:
    ///   - count: The number of bytes that must fit.
    ///   - id: The id of an upload that is not removed.
    /// - Returns: Whether the bytes fit.
    @discardableResult
    nonisolated func removeStalledBodies(toFit count: Int64, except id: String? = nil) async throws -> Bool {
        var last = Int64.max
        // Other calls may add or remove bytes at the same time, so the excess is computed again until it no longer
        // shrinks.
        while let excess = try await excess(of: count) {
            guard excess < last else { return false }
            last = excess
            _ = await staged.removeStalled(freeing: excess, except: id)
        }
        return true
    }

    /// Returns the number of bytes by which requests, uploads and `count` more bytes together exceed the queue's limit;
    /// `nil` if they fit.
    private nonisolated func excess(of count: Int64) async throws -> Int64? {
        let excess = try await staged.byteCount + count - store.archive.availableCapacity().bytes
        return excess > 0 ? excess : nil
    }

    /// The uploads that no request uses yet, sorted by id.
    public nonisolated func stagedBodies() async -> [StagedBody] { await staged.list() }

    /// Removes an upload. A client that appends another piece receives `unknownStagedBody`.
    ///
    /// - Returns: The removed upload.
    /// - Throws: ``QueueError/Code/unknownStagedBody``.
    public nonisolated func removeStagedBody(_ id: String) async throws -> StagedBody {
        guard let body = await staged.remove(id) else { throw QueueError.unknownStagedBody(id) }
        return body
    }

    /// Removes all uploads that no request uses yet, and returns them.
    public nonisolated func removeStagedBodies() async -> [StagedBody] {
        var removed: [StagedBody] = []
        for body in await staged.list() {
            if let body = await staged.remove(body.id) { removed.append(body) }
        }
        return removed
    }

    /// Finishes an upload, so that a request can use it as its body. The caller must release it
    /// (`StagedBodies.release(_:)`) when the request is stored or refused.
    nonisolated func finishBody(
        _ id: String,
        size: Int64,
        by submitter: Submitter?
    ) async throws -> HeldBody {
        let upload = try await staged.finish(id, size: size, by: submitter)
        // The upload may have been started for an import, whose size is not limited to that of a body.
        guard upload.body.size <= QueueRequest.maximumBodyBytes else {
            await store.spool.remove([upload.body.name])
            await staged.release([upload])
            throw QueueError.bodyTooLarge(limit: QueueRequest.maximumBodyBytes)
        }
        return upload
    }
}

extension StagedBodyPurpose {
    fileprivate var limit: Int64 {
        switch self {
        case .request: QueueRequest.maximumBodyBytes
        case .import: .max
        }
    }
}
