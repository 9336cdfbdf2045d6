package import Foundation

/// The uploads: bodies that clients send in pieces, before a request uses them. A client may disappear after any call.
///
/// An upload is removed ten minutes after its last call, and after a failure of the spool. Its id is then unknown. A
/// call with a wrong offset changes nothing.
package actor StagedBodies<Time: Clock> where Time.Duration == Duration {
    struct Entry {
        let writer: BodyWriter
        /// The user who uploads the body; `nil` for this process itself.
        let user: UInt32?
        /// Whether the user has a quota.
        let isLimited: Bool
        /// The offset of the next piece: the number of bytes received so far, including those that are being written.
        var offset: Int64 = 0
        var lastUse: Time.Instant
        /// The number of calls of `append` in progress.
        var writes = 0
    }

    /// The number and the size of bodies.
    struct Load {
        var bodies = 0
        var bytes: Int64 = 0
    }

    /// The maximum number of uploads, because each has an open file.
    let capacity: SharedLimit
    /// The time without a call after which an upload is removed. Default 10 minutes.
    private let idleTimeout: Duration
    /// The time without a call after which an upload is stalled: its client seems to be gone. A stalled upload may be
    /// removed when a limit is reached.
    private let stallTimeout: Duration
    private let spool: BodySpool
    private let clock: Time
    private(set) var entries: [String: Entry] = [:] {
        didSet {
            let (before, now) = (spool.stagedBytes.count, byteCount)
            spool.stagedBytes.set(now)
            if now < before { onRelease() }
        }
    }
    /// The held bodies of users with a quota.
    private var held: [UInt32: Load] = [:]
    private let onRelease: @Sendable () -> Void
    private var expiry: Task<Void, Never>?

    /// - Parameters:
    ///   - capacity: The maximum number of uploads. Default 64. Users with a quota have shares of it.
    ///   - clock: Measures `idleTimeout` and `stallTimeout`.
    ///   - onRelease: Called on this actor when the total size has decreased, because an upload was removed or
    ///     finished.
    package init(
        spool: BodySpool,
        clock: Time,
        capacity: Int = 64,
        idleTimeout: Duration = .seconds(600),
        stallTimeout: Duration = BodySpool.uploadStallTimeout,
        onRelease: @escaping @Sendable () -> Void = {}
    ) {
        self.spool = spool
        self.clock = clock
        self.capacity = SharedLimit(capacity)
        self.idleTimeout = idleTimeout
        self.stallTimeout = stallTimeout
        self.onRelease = onRelease
    }

    deinit {
        expiry?.cancel()
    }

    /// The number of uploads.
    package var count: Int { entries.count }

    /// The total size of the uploads in bytes.
    package var byteCount: Int64 { entries.values.reduce(0) { $0 + $1.offset } }

    /// Returns all uploads, sorted by id.
    package func list() -> [StagedBody] {
        entries.keys.sorted().compactMap { describe($0) }
    }

    private func describe(_ id: String) -> StagedBody? {
        entries[id].map {
            StagedBody(id: id, bytes: $0.offset, idle: $0.lastUse.duration(to: clock.now), submitter: $0.user)
        }
    }

    /// Starts an upload, or continues the upload with this id. A client that did not receive the response can therefore
    /// repeat the call. If the user has too many uploads, or all users together, the longest stalled one of them is
    /// removed.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of bytes.
    ///   - submitter: The user who uploads the body. Default: `nil`, this process itself.
    /// - Returns: The offset of the next piece; 0 for a new upload.
    /// - Throws: ``QueueError``: `tooManyStagedBodies`, `quotaExceeded`, `spoolFailed`, `notSubmitter`.
    @discardableResult
    package func begin(
        _ id: String,
        limit: Int64,
        by submitter: Submitter? = nil
    ) async throws(QueueError) -> Int64 {
        if entries[id] == nil { await makeRoom(for: submitter) }
        if entries[id] != nil {
            let entry = try entry(id, of: submitter)
            touch(id)
            return entry.offset
        }
        try checkCapacity(for: submitter)
        let writer = try spool.makeWriter(limit: limit)
        entries[id] = Entry(
            writer: writer,
            user: submitter?.user,
            isLimited: submitter.limitedUser != nil,
            lastUse: clock.now
        )
        watch()
        return 0
    }

    /// Appends a piece to an upload.
    ///
    /// - Parameters:
    ///   - offset: The offset of the piece: the number of bytes in all pieces before it.
    ///   - submitter: The user who uploads the body. Default: `nil`, this process itself.
    /// - Returns: The offset of the next piece.
    /// - Throws: ``QueueError``: `unknownStagedBody`, `notSubmitter`, `wrongOffset` with the expected offset,
    ///   `bodyTooLarge`, `quotaExceeded`, `insufficientSpace`, `spoolFailed`.
    @discardableResult
    package func append(
        _ bytes: Data,
        to id: String,
        at offset: Int64,
        by submitter: Submitter? = nil
    ) async throws(QueueError) -> Int64 {
        let entry = try entry(id, of: submitter)
        guard offset == entry.offset else {
            throw QueueError(
                .wrongOffset,
                "the next offset of the upload \(quoted(id)) is \(entry.offset), not \(offset)",
                offset: entry.offset
            )
        }
        try checkQuota(of: submitter, for: Int64(bytes.count))
        let next = offset + Int64(bytes.count)
        // The offset changes before the bytes are written. Otherwise a concurrent call could append the same piece
        // again.
        entries[id]?.offset = next
        entries[id]?.writes += 1
        touch(id)
        do {
            try await entry.writer.append(bytes)
        } catch {
            drop(id, of: entry.writer)
            throw error
        }
        if entries[id]?.writer === entry.writer {
            entries[id]?.writes -= 1
            touch(id)
        }
        return next
    }

    /// Finishes an upload. Its id is then unknown. It counts against the quota of `submitter` until ``release(_:)``.
    ///
    /// - Parameters:
    ///   - size: The total number of bytes that the caller has sent.
    ///   - submitter: The user who uses the body. Default: `nil`, this process itself.
    /// - Returns: The upload with its durable body. The caller now owns the body, and must remove it if no request uses
    ///   it.
    /// - Throws: ``QueueError``: `unknownStagedBody`, `notSubmitter`, `wrongOffset` with the received size,
    ///   `insufficientSpace`, `spoolFailed`.
    package func finish(
        _ id: String,
        size: Int64,
        by submitter: Submitter? = nil
    ) async throws(QueueError) -> HeldBody {
        let entry = try entry(id, of: submitter)
        guard size == entry.offset else {
            throw QueueError(
                .wrongOffset,
                "the upload \(quoted(id)) has \(entry.offset) bytes, but the size in the request is \(size); upload "
                    + "the rest, or correct the size",
                offset: entry.offset
            )
        }
        drop(id, of: entry.writer)
        let user = submitter.limitedUser
        count(1, of: size, for: user)
        do {
            return HeldBody(body: try await entry.writer.finish(), user: user)
        } catch {
            count(-1, of: size, for: user)
            throw error
        }
    }

    /// Counts the body of a request that waits for room against the quota of `submitter`, like an upload, until
    /// ``release(_:)``.
    ///
    /// - Throws: ``QueueError`` with `quotaExceeded`.
    package func hold(_ body: SpooledBody, by submitter: Submitter?) throws(QueueError) -> HeldBody {
        try checkShare(of: submitter)
        try checkQuota(of: submitter, for: body.size)
        count(1, of: body.size, for: submitter.limitedUser)
        return HeldBody(body: body, user: submitter.limitedUser)
    }

    /// Stops counting held bodies against the quotas of their users, because requests are stored with them or they were
    /// removed.
    package func release(_ bodies: [HeldBody]) {
        for held in bodies { count(-1, of: held.body.size, for: held.user) }
    }

    private func count(_ bodies: Int, of size: Int64, for user: UInt32?) {
        guard let user else { return }
        var load = held[user, default: Load()]
        load.bodies += bodies
        load.bytes += Int64(bodies) * size
        held[user] = load.bodies == 0 ? nil : load
    }

    /// Removes an upload.
    ///
    /// - Returns: The removed upload; `nil` if the id is unknown.
    @discardableResult
    package func remove(_ id: String) async -> StagedBody? {
        let body = describe(id)
        await entries.removeValue(forKey: id)?.writer.discard()
        return body
    }

    /// Removes all uploads.
    package func removeAll() async {
        for id in entries.keys { await remove(id) }
    }

    /// Removes stalled uploads until they have freed enough bytes. The upload that was idle longest is removed first.
    ///
    /// - Parameters:
    ///   - bytes: The number of bytes to free.
    ///   - id: An upload that must not be removed.
    /// - Returns: Whether enough bytes were freed. If all stalled uploads together have fewer bytes, none is removed.
    package func removeStalled(freeing bytes: Int64, except id: String? = nil) async -> Bool {
        let stalled = self.stalled.filter { $0.key != id }
        guard stalled.reduce(0, { $0 + $1.value.offset }) >= bytes else { return false }
        var freed: Int64 = 0
        // A piece for this upload may have arrived while another one was being removed, so it is checked again.
        for (id, entry) in stalled where freed < bytes && isStalled(id) {
            freed += entry.offset
            await remove(id)
        }
        return freed >= bytes
    }

    /// The stalled uploads, in the order of their last piece, the oldest first.
    var stalled: [(key: String, value: Entry)] {
        entries.filter { isStalled($0.key) }.sorted { $0.value.lastUse < $1.value.lastUse }
    }

    private func isStalled(_ id: String) -> Bool {
        guard let entry = entries[id], entry.writes == 0 else { return false }
        return entry.lastUse.advanced(by: stallTimeout) <= clock.now
    }

    /// Returns the next time after `start` at which an upload becomes stalled unless it gets another piece; `nil` if
    /// there is none. The time may be in the past.
    package func nextStall(after start: Time.Instant) -> Time.Instant? {
        entries.values
            .map { ($0.writes > 0 ? clock.now : $0.lastUse).advanced(by: stallTimeout) }
            .filter { $0 > start }
            .min()
    }

    // MARK: Entries

    private func entry(_ id: String, of submitter: Submitter?) throws(QueueError) -> Entry {
        guard let entry = entries[id] else { throw .unknownStagedBody(id) }
        guard submitter.mayChange(entry.user) else {
            throw QueueError(.notSubmitter, "the upload \(quoted(id)) belongs to another user")
        }
        return entry
    }

    /// The number and the size of a user's uploads and held bodies.
    func load(of user: UInt32) -> Load {
        entries.values.reduce(into: held[user, default: Load()]) { load, entry in
            guard entry.user == user else { return }
            load.bodies += 1
            load.bytes += entry.offset
        }
    }

    private func checkQuota(of submitter: Submitter?, for count: Int64) throws(QueueError) {
        guard let submitter, let limit = submitter.quota?.stagedBytes else { return }
        let used = load(of: submitter.user).bytes
        guard used + count > limit else { return }
        throw QueueError(
            .quotaExceeded,
            "the uploads and the bodies of waiting requests of the user \(submitter.user) have \(used) of at most "
                + "\(limit) bytes, so there is no room for \(count) more"
        )
    }

    private func touch(_ id: String) {
        entries[id]?.lastUse = clock.now
    }

    /// Removes the entry of a writer. Has no effect if the id now belongs to another upload.
    private func drop(_ id: String, of writer: BodyWriter) {
        if entries[id]?.writer === writer { entries[id] = nil }
    }

    // MARK: Idle bodies

    /// Starts the task that removes idle uploads, if it is not running. It ends when there are no uploads.
    private func watch() {
        guard expiry == nil else { return }
        expiry = Task { [weak self, clock] in
            while let due = await self?.nextDue() {
                guard (try? await clock.sleep(until: due, tolerance: nil)) != nil else { return }
                await self?.removeIdle()
            }
        }
    }

    private func isExpired(_ entry: Entry) -> Bool { entry.lastUse.advanced(by: idleTimeout) <= clock.now }

    private func nextDue() -> Time.Instant? {
        let oldest = entries.values.map(\.lastUse).min()
        if oldest == nil { expiry = nil }
        return oldest?.advanced(by: idleTimeout)
    }

    private func removeIdle() async {
        // Searches again after each removal, because the state may have changed while a file was being removed.
        while let id = entries.first(where: { isExpired($0.value) })?.key { await remove(id) }
    }
}

/// A body in the spool that no stored request uses: a finished upload, or the body of a request that waits for room. It
/// counts against the quota of its user until it is released.
package struct HeldBody: Sendable {
    package let body: SpooledBody
    /// The user whose quota counts the body; `nil` if no quota does.
    fileprivate let user: UInt32?
}

extension Optional<Submitter> {
    /// The user, if it has a quota.
    var limitedUser: UInt32? { self?.quota == nil ? nil : self?.user }
}

extension QueueError {
    package static func unknownStagedBody(_ id: String) -> QueueError {
        QueueError(
            .unknownStagedBody,
            "there is no upload \(quoted(id)): a request used it, or it was removed"
        )
    }
}
