public import Foundation

/// What a body that is uploaded in pieces is for.
public enum StagedBodyPurpose: String, Hashable, Sendable, CaseIterable {
    /// The body of a request: at most ``QueueRequest/maximumBodyBytes``.
    case request
    /// An export to be imported: as long as ``QueueLimits/bytes`` allows.
    case `import`
}

/// An upload that no request uses yet.
public struct StagedBody: Hashable, Sendable {
    /// The name that the caller gave it.
    public let id: String
    /// How many bytes were uploaded.
    public let bytes: Int64
    /// How long ago the last piece came.
    public let idle: Duration

    package init(id: String, bytes: Int64, idle: Duration) {
        self.id = id
        self.bytes = bytes
        self.idle = idle
    }
}

/// Bodies that are uploaded in pieces before a request uses them.
extension OfflineQueue {
    /// Appends to a body that is uploaded in pieces, or begins one.
    ///
    /// A body that receives no piece for ten minutes is removed. There are at most 64, and their bytes count against
    /// ``QueueLimits/bytes``, for bodies, requests and imports. When either limit is reached, bodies that have been
    /// without a piece for ten seconds are removed, the longest ones first, if that makes enough room. An empty piece
    /// counts.
    ///
    /// - Parameters:
    ///   - id: A name for the body, made by the caller.
    ///   - bytes: The piece.
    ///   - offset: How many bytes were appended before.
    ///   - purpose: What it is for; the first piece decides. Default: a request.
    /// - Returns: How many bytes it has now.
    /// - Throws: ``QueueError``: `wrongOffset` with the right one, `bodyTooLarge`, `tooManyStagedBodies`, `queueFull`,
    ///   `insufficientSpace`, `spoolFailed`, `unknownStagedBody`. After a failure to write the body is removed.
    public nonisolated func appendToBody(
        _ id: String,
        _ bytes: Data,
        at offset: Int64,
        for purpose: StagedBodyPurpose = .request
    ) async throws -> Int64 {
        try RequestChecks.checkPrintable(id, "body's id")
        try await makeRoom(for: Int64(bytes.count), of: id)
        if offset == 0 { try await staged.begin(id, limit: purpose.limit) }
        return try await staged.append(bytes, to: id, at: offset)
    }

    private nonisolated func makeRoom(for count: Int64, of id: String) async throws {
        guard count > 0, try await !removeStalledBodies(toFit: count, except: id) else { return }
        let (used, room) = (await staged.byteCount, try await store.archive.room().bytes)
        throw QueueError(.queueFull, "uploads have \(used) bytes, and the queue has room for \(room)")
    }

    /// Removes uploads whose clients are gone, if that makes these bytes fit.
    ///
    /// - Parameter id: An upload that is not removed.
    /// - Returns: Whether the bytes fit.
    @discardableResult
    nonisolated func removeStalledBodies(toFit count: Int64, except id: String? = nil) async throws -> Bool {
        var last = Int64.max
        // Another caller may have removed the same uploads in the meantime, so the excess is computed again until it
        // does not shrink any more.
        while let excess = try await excess(of: count) {
            guard excess < last else { return false }
            last = excess
            _ = await staged.removeStalled(freeing: excess, except: id)
        }
        return true
    }

    /// By how much these bytes exceed the queue's limit, with what it has and what is uploaded; `nil` when they fit.
    private nonisolated func excess(of count: Int64) async throws -> Int64? {
        let excess = try await staged.byteCount + count - store.archive.room().bytes
        return excess > 0 ? excess : nil
    }

    /// The uploads that no request uses yet, by their names.
    public nonisolated func stagedBodies() async -> [StagedBody] { await staged.list() }

    /// Removes an upload. A client that still uploads it gets `unknownStagedBody`.
    ///
    /// - Returns: What was removed.
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

    /// Ends the upload of a request's body.
    nonisolated func finishBody(_ id: String, size: Int64) async throws -> SpooledBody {
        let body = try await staged.finish(id, size: size)
        // It was uploaded for an import.
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
