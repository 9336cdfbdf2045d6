package import Foundation

/// Bodies that are uploaded in pieces, by calls each of which may be the client's last.
///
/// A body is removed when no call has named it for ten minutes, and after a failure of the spool; its id is then
/// unknown. A wrong offset changes nothing.
package actor StagedBodies<Time: Clock> where Time.Duration == Duration {
    private struct Entry {
        let writer: BodyWriter
        /// Where the next piece begins. Pieces that are being written count.
        var offset: Int64 = 0
        var lastUse: Time.Instant
        /// How many pieces are being written.
        var writes = 0
    }

    /// The maximum number of bodies: each has an open file. Default 64.
    private let capacity: Int
    /// How long a body waits for its next call. Default ten minutes.
    private let patience: Duration
    /// From so long without a call on, a body makes way for others when a limit is reached: its client is gone.
    private let stall: Duration
    private let spool: BodySpool
    private let clock: Time
    private var entries: [String: Entry] = [:] {
        didSet { spool.stagedBytes.set(byteCount) }
    }
    private var expiry: Task<Void, Never>?

    /// - Parameter clock: What `patience` and `stall` are measured by.
    package init(
        spool: BodySpool,
        clock: Time,
        capacity: Int = 64,
        patience: Duration = .seconds(600),
        stall: Duration = .seconds(10)
    ) {
        self.spool = spool
        self.clock = clock
        self.capacity = capacity
        self.patience = patience
        self.stall = stall
    }

    deinit {
        expiry?.cancel()
    }

    /// The number of bodies.
    package var count: Int { entries.count }

    /// How many bytes they have together.
    package var byteCount: Int64 { entries.values.reduce(0) { $0 + $1.offset } }

    /// The bodies, by their names.
    package func list() -> [StagedBody] {
        entries.keys.sorted().compactMap { describe($0) }
    }

    private func describe(_ id: String) -> StagedBody? {
        entries[id].map {
            StagedBody(id: id, bytes: $0.offset, idle: $0.lastUse.duration(to: clock.now))
        }
    }

    /// Begins a body. One that has begun goes on, so that a caller who did not get the answer may ask again.
    ///
    /// - Parameter limit: How many bytes it may have.
    /// - Returns: Where its next piece begins: 0 for a new one.
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
                "\(entries.count) bodies are being uploaded, and at most \(capacity) may be at once"
            )
        }
        entries[id] = Entry(writer: try spool.stage(limit: limit), lastUse: clock.now)
        watch()
        return 0
    }

    /// Appends a piece.
    ///
    /// - Parameter offset: Where the piece begins: how many bytes the caller has handed over before.
    /// - Returns: Where the next piece begins.
    /// - Throws: ``QueueError``: `unknownStagedBody`; `wrongOffset` with the right one; `bodyTooLarge`,
    ///   `insufficientSpace`, `spoolFailed`.
    @discardableResult
    package func append(_ bytes: Data, to id: String, at offset: Int64) async throws(QueueError) -> Int64 {
        let entry = try entry(id)
        guard offset == entry.offset else {
            throw QueueError(
                .wrongOffset,
                "body \(quoted(id)) goes on at \(entry.offset), not at \(offset)",
                offset: entry.offset
            )
        }
        let next = offset + Int64(bytes.count)
        // Before the bytes are written, so that the same piece is not taken twice.
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

    /// Ends a body.
    ///
    /// - Parameter size: How many bytes the caller has uploaded.
    /// - Returns: The body, which is durable and is the caller's to remove.
    /// - Throws: As ``append(_:to:at:)``.
    package func finish(_ id: String, size: Int64) async throws(QueueError) -> SpooledBody {
        let entry = try entry(id)
        guard size == entry.offset else {
            throw QueueError(
                .wrongOffset,
                "body \(quoted(id)) has \(entry.offset) bytes, not \(size)",
                offset: entry.offset
            )
        }
        drop(id, of: entry.writer)
        return try await entry.writer.finish()
    }

    /// Removes a body.
    ///
    /// - Returns: What was removed; `nil` when there is none.
    @discardableResult
    package func remove(_ id: String) async -> StagedBody? {
        let body = describe(id)
        await entries.removeValue(forKey: id)?.writer.giveUp()
        return body
    }

    /// Removes all bodies.
    package func removeAll() async {
        for id in entries.keys { await remove(id) }
    }

    /// Makes room: removes bodies that have been without a call for long, the longest first, until so many bytes are
    /// free.
    ///
    /// - Parameters:
    ///   - bytes: How many bytes are needed.
    ///   - id: A body that stays.
    /// - Returns: Whether they are free now. If all that may be removed is not enough, nothing is.
    package func removeStalled(freeing bytes: Int64, except id: String? = nil) async -> Bool {
        let stalled = self.stalled.filter { $0.key != id }
        guard stalled.reduce(0, { $0 + $1.value.offset }) >= bytes else { return false }
        var freed: Int64 = 0
        // A piece may come while another body's file is removed.
        for (id, entry) in stalled where freed < bytes && isStalled(id) {
            freed += entry.offset
            await remove(id)
        }
        return freed >= bytes
    }

    private func removeLongestStalled() async {
        if let longest = stalled.first { await remove(longest.key) }
    }

    /// Those that make way for others, the first one first.
    private var stalled: [(key: String, value: Entry)] {
        entries.filter { isStalled($0.key) }.sorted { $0.value.lastUse < $1.value.lastUse }
    }

    private func isStalled(_ id: String) -> Bool {
        guard let entry = entries[id], entry.writes == 0 else { return false }
        return entry.lastUse.advanced(by: stall) <= clock.now
    }

    // MARK: Entries

    private func entry(_ id: String) throws(QueueError) -> Entry {
        guard let entry = entries[id] else { throw .unknownStagedBody(id) }
        return entry
    }

    private func touch(_ id: String) {
        entries[id]?.lastUse = clock.now
    }

    /// The id may be another body's by now.
    private func drop(_ id: String, of writer: BodyWriter) {
        if entries[id]?.writer === writer { entries[id] = nil }
    }

    // MARK: Patience

    /// One task for all, for as long as there are any.
    private func watch() {
        guard expiry == nil else { return }
        expiry = Task { [weak self, clock] in
            while let due = await self?.nextDue() {
                guard (try? await clock.sleep(until: due, tolerance: nil)) != nil else { return }
                await self?.removeIdle()
            }
        }
    }

    private func isExpired(_ entry: Entry) -> Bool { entry.lastUse.advanced(by: patience) <= clock.now }

    private func nextDue() -> Time.Instant? {
        let oldest = entries.values.map(\.lastUse).min()
        if oldest == nil { expiry = nil }
        return oldest?.advanced(by: patience)
    }

    private func removeIdle() async {
        // Looked for again after each: a piece may come while another body's file is removed.
        while let id = entries.first(where: { isExpired($0.value) })?.key { await remove(id) }
    }
}

extension QueueError {
    static func unknownStagedBody(_ id: String) -> QueueError {
        QueueError(
            .unknownStagedBody,
            "no body \(quoted(id)) is being uploaded: a request used it, or it was removed"
        )
    }
}
