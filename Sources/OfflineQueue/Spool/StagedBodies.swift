package import Foundation

/// Bodies that clients upload in pieces. A client may stop after any call.
///
/// A body is removed ten minutes after the last call for it, and after a failure of the spool. Its id is unknown from
/// then on. A wrong offset changes nothing.
package actor StagedBodies<Time: Clock> where Time.Duration == Duration {
    private struct Entry {
        let writer: BodyWriter
        /// The offset of the next piece, which includes pieces that are being written.
        var offset: Int64 = 0
        var lastUse: Time.Instant
        /// The number of pieces that are being written.
        var writes = 0
    }

    /// The maximum number of bodies, because each has an open file. Default 64.
    private let capacity: Int
    /// The time without a call after which a body is removed. Default ten minutes.
    private let idleTimeout: Duration
    /// The time without a call after which a body may be removed when a limit is reached, because its client seems to
    /// be gone. Default 10 seconds.
    private let stallTimeout: Duration
    private let spool: BodySpool
    private let clock: Time
    private var entries: [String: Entry] = [:] {
        didSet {
            let (before, now) = (spool.stagedBytes.count, byteCount)
            spool.stagedBytes.set(now)
            if now < before { onRelease() }
        }
    }
    private let onRelease: @Sendable () -> Void
    private var expiry: Task<Void, Never>?

    /// - Parameters:
    ///   - clock: Measures `idleTimeout` and `stallTimeout`.
    ///   - onRelease: Called on the actor when bodies were removed or finished, so that there are fewer bytes.
    package init(
        spool: BodySpool,
        clock: Time,
        capacity: Int = 64,
        idleTimeout: Duration = .seconds(600),
        stallTimeout: Duration = .seconds(10),
        onRelease: @escaping @Sendable () -> Void = {}
    ) {
        self.spool = spool
        self.clock = clock
        self.capacity = capacity
        self.idleTimeout = idleTimeout
        self.stallTimeout = stallTimeout
        self.onRelease = onRelease
    }

    deinit {
        expiry?.cancel()
    }

    /// The number of bodies.
    package var count: Int { entries.count }

    /// The total size of the bodies in bytes.
    package var byteCount: Int64 { entries.values.reduce(0) { $0 + $1.offset } }

    /// Returns the bodies, sorted by id.
    package func list() -> [StagedBody] {
        entries.keys.sorted().compactMap { describe($0) }
    }

    private func describe(_ id: String) -> StagedBody? {
        entries[id].map {
            StagedBody(id: id, bytes: $0.offset, idle: $0.lastUse.duration(to: clock.now))
        }
    }

    /// Starts a body. A body with this id that was already started continues, so a client that did not receive the
    /// response can repeat the call.
    ///
    /// - Parameter limit: The maximum number of bytes.
    /// - Returns: The offset of the next piece; 0 for a new body.
    /// - Throws: ``QueueError``: `tooManyStagedBodies`, `spoolFailed`.
    @discardableResult
    package func begin(_ id: String, limit: Int64) async throws(QueueError) -> Int64 {
        if entries[id] == nil, entries.count >= capacity { await removeLongestStalled() }
        if let entry = entries[id] {
            touch(id)
            return entry.offset
        }
        guard entries.count < capacity else {
            throw QueueError(
                .tooManyStagedBodies,
                "\(entries.count) uploads are open; the maximum is \(capacity)"
            )
        }
        entries[id] = Entry(writer: try spool.makeWriter(limit: limit), lastUse: clock.now)
        watch()
        return 0
    }

    /// Appends a piece.
    ///
    /// - Parameter offset: The offset of the piece, which is the number of bytes that the caller has passed before.
    /// - Returns: The offset of the next piece.
    /// - Throws: ``QueueError``: `unknownStagedBody`; `wrongOffset` with the right one; `bodyTooLarge`,
    ///   `insufficientSpace`, `spoolFailed`.
    @discardableResult
    package func append(_ bytes: Data, to id: String, at offset: Int64) async throws(QueueError) -> Int64 {
        let entry = try entry(id)
        guard offset == entry.offset else {
            throw QueueError(
                .wrongOffset,
                "the next offset of the upload \(quoted(id)) is \(entry.offset), not \(offset)",
                offset: entry.offset
            )
        }
        let next = offset + Int64(bytes.count)
        // Set before the bytes are written, so that the same piece is not accepted twice.
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

    /// Finishes a body.
    ///
    /// - Parameter size: The number of bytes that the caller has uploaded.
    /// - Returns: The durable body. The caller owns it and must remove it.
    /// - Throws: As ``append(_:to:at:)``.
    package func finish(_ id: String, size: Int64) async throws(QueueError) -> SpooledBody {
        let entry = try entry(id)
        guard size == entry.offset else {
            throw QueueError(
                .wrongOffset,
                "the upload \(quoted(id)) has \(entry.offset) bytes, not \(size)",
                offset: entry.offset
            )
        }
        drop(id, of: entry.writer)
        return try await entry.writer.finish()
    }

    /// Removes a body.
    ///
    /// - Returns: The removed body; `nil` when there is none.
    @discardableResult
    package func remove(_ id: String) async -> StagedBody? {
        let body = describe(id)
        await entries.removeValue(forKey: id)?.writer.discard()
        return body
    }

    /// Removes all bodies.
    package func removeAll() async {
        for id in entries.keys { await remove(id) }
    }

    /// Removes stalled bodies until enough bytes are free, starting with the body that was idle longest.
    ///
    /// - Parameters:
    ///   - bytes: The number of bytes to free.
    ///   - id: A body that is not removed.
    /// - Returns: Whether the bytes were freed. If all stalled bodies together are too small, none is removed.
    package func removeStalled(freeing bytes: Int64, except id: String? = nil) async -> Bool {
        let stalled = self.stalled.filter { $0.key != id }
        guard stalled.reduce(0, { $0 + $1.value.offset }) >= bytes else { return false }
        var freed: Int64 = 0
        // A piece may arrive while the file of another body is removed, so the state is checked again.
        for (id, entry) in stalled where freed < bytes && isStalled(id) {
            freed += entry.offset
            await remove(id)
        }
        return freed >= bytes
    }

    private func removeLongestStalled() async {
        if let longest = stalled.first { await remove(longest.key) }
    }

    /// The bodies that may be removed when a limit is reached, in the order of removal.
    private var stalled: [(key: String, value: Entry)] {
        entries.filter { isStalled($0.key) }.sorted { $0.value.lastUse < $1.value.lastUse }
    }

    private func isStalled(_ id: String) -> Bool {
        guard let entry = entries[id], entry.writes == 0 else { return false }
        return entry.lastUse.advanced(by: stallTimeout) <= clock.now
    }

    /// Returns when the next body stalls that was not stalled at `start`, if it gets no piece until then; `nil` when
    /// there is none. The time may be in the past.
    package func nextStall(after start: Time.Instant) -> Time.Instant? {
        entries.values
            .map { ($0.writes > 0 ? clock.now : $0.lastUse).advanced(by: stallTimeout) }
            .filter { $0 > start }
            .min()
    }

    // MARK: Entries

    private func entry(_ id: String) throws(QueueError) -> Entry {
        guard let entry = entries[id] else { throw .unknownStagedBody(id) }
        return entry
    }

    private func touch(_ id: String) {
        entries[id]?.lastUse = clock.now
    }

    /// Removes an entry, unless its id belongs to another body by now.
    private func drop(_ id: String, of writer: BodyWriter) {
        if entries[id]?.writer === writer { entries[id] = nil }
    }

    // MARK: Idle bodies

    /// Starts the task that removes idle bodies. One task serves all bodies, and ends when there are none.
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
        // Searches again after each removal, because a piece may arrive while the file of another body is removed.
        while let id = entries.first(where: { isExpired($0.value) })?.key { await remove(id) }
    }
}

extension QueueError {
    static func unknownStagedBody(_ id: String) -> QueueError {
        QueueError(
            .unknownStagedBody,
            "there is no upload \(quoted(id)): a request used it, or it was removed"
        )
    }
}
