public import Foundation

/// Bodies that are uploaded in pieces before a request uses them.
extension OfflineQueue {
    /// Appends a piece to an upload. A piece at offset 0 starts the upload.
    ///
    /// An upload that receives no piece for ten minutes is removed. There are at most 64 uploads, and their bytes count
    /// against ``QueueLimits/bytes`` together with requests and imports. When either limit is reached, the queue
    /// removes uploads that received no piece for ten seconds, the longest idle first, if that frees enough room. An
    /// empty piece counts as a piece.
    ///
    /// - Parameters:
    ///   - id: The name of the upload, chosen by the caller.
    ///   - bytes: The piece.
    ///   - offset: The number of bytes appended before.
    ///   - purpose: The purpose of the upload, set by its first piece. Default: a request.
    /// - Returns: The number of bytes uploaded so far.
    /// - Throws: ``QueueError``: `wrongOffset` with the expected offset, `bodyTooLarge`, `tooManyStagedBodies`,
    ///   `queueFull`, `insufficientSpace`, `spoolFailed`, `unknownStagedBody`. If writing fails, the upload is removed.
    public nonisolated func appendToBody(
        _ id: String,
        _ bytes: Data,
        at offset: Int64,
        for purpose: StagedBodyPurpose = .request
    ) async throws -> Int64 {
        try RequestChecks.checkPrintable(id, "body's id")
        try await freeCapacity(for: Int64(bytes.count), of: id)
        if offset == 0 { try await staged.begin(id, limit: purpose.limit) }
        return try await staged.append(bytes, to: id, at: offset)
    }

    private nonisolated func freeCapacity(for count: Int64, of id: String) async throws {
        guard count > 0, try await !removeStalledBodies(toFit: count, except: id) else { return }
        let (used, room) = (await staged.byteCount, try await store.archive.availableCapacity().bytes)
        throw QueueError(
            .queueFull,
            "\(count) more bytes do not fit: uploads use \(used) of the \(room) bytes that requests leave free"
        )
    }

    /// Removes uploads whose clients are gone, if that makes these bytes fit.
    ///
    /// - Parameter id: An upload that is not removed.
    /// - Returns: Whether the bytes fit.
    @discardableResult
    nonisolated func removeStalledBodies(toFit count: Int64, except id: String? = nil) async throws -> Bool {
        var last = Int64.max
        // Another caller may have removed the same uploads in the meantime, so the excess is computed again until it
        // no longer shrinks.
        while let excess = try await excess(of: count) {
            guard excess < last else { return false }
            last = excess
            _ = await staged.removeStalled(freeing: excess, except: id)
        }
        return true
    }

    /// Returns by how many bytes the queue's limit is exceeded, counting requests, uploads and these bytes; `nil` if
    /// they fit.
    private nonisolated func excess(of count: Int64) async throws -> Int64? {
        let excess = try await staged.byteCount + count - store.archive.availableCapacity().bytes
        return excess > 0 ? excess : nil
    }

    /// The uploads that no request uses yet, sorted by name.
    public nonisolated func stagedBodies() async -> [StagedBody] { await staged.list() }

    /// Removes an upload. A client that still uploads to it receives `unknownStagedBody`.
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

    /// Finishes the upload of a request's body.
    nonisolated func finishBody(_ id: String, size: Int64) async throws -> SpooledBody {
        let body = try await staged.finish(id, size: size)
        // An upload for an import may be longer than the body of a request.
        guard body.size <= QueueRequest.maximumBodyBytes else {
            await store.spool.remove([body.name])
            throw QueueError.bodyTooLarge(limit: QueueRequest.maximumBodyBytes)
        }
        return body
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
