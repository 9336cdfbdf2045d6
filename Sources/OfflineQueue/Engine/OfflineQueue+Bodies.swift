public import Foundation

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
