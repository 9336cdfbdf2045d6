package import Foundation

/// Bodies that come in pieces, by calls each of which may be the caller's last.
///
/// A body is given up when no call has named it for an hour, and after a failure of the spool; its id is then
/// unknown. A wrong offset changes nothing.
package actor StagedBodies<Time: Clock> where Time.Duration == Duration {
    private struct Entry {
        let writer: BodyWriter
        /// Where the next piece begins. Pieces that are being written count.
        var offset: Int64 = 0
        var lastUse: Time.Instant
    }

    /// How many there may be at once: each has an open file. Default 64.
    private let capacity: Int
    /// How long a body waits for its next call. Default one hour.
    private let patience: Duration
    /// How many bytes each may have.
    private let limit: Int64
    private let spool: BodySpool
    private let clock: Time
    private var entries: [String: Entry] = [:]
    private var expiry: Task<Void, Never>?

    /// - Parameters:
    ///   - limit: How many bytes each body may have.
    ///   - clock: What the patience is measured by.
    package init(
        spool: BodySpool,
        limit: Int64,
        clock: Time,
        capacity: Int = 64,
        patience: Duration = .seconds(3600)
    ) {
        self.spool = spool
        self.limit = limit
        self.clock = clock
        self.capacity = capacity
        self.patience = patience
    }

    deinit {
        expiry?.cancel()
    }

    /// How many there are.
    package var count: Int { entries.count }

    /// How many bytes they have together.
    package var byteCount: Int64 { entries.values.reduce(0) { $0 + $1.offset } }

    /// Begins a body. One that has begun goes on, so that a caller who did not hear the answer may ask again.
    ///
    /// - Returns: Where its next piece begins: 0 for a new one.
    /// - Throws: ``QueueError``: `tooManyStagedBodies`, `spoolFailed`.
    @discardableResult
    package func begin(_ id: String) throws(QueueError) -> Int64 {
        if let entry = entries[id] {
            touch(id)
            return entry.offset
        }
        guard entries.count < capacity else {
            throw QueueError(
                .tooManyStagedBodies,
                "\(entries.count) bodies are being handed over, and at most \(capacity) may be at once"
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
        let writer = try entry(id, at: offset).writer
        let next = offset + Int64(bytes.count)
        // Before the bytes are written, so that the same piece is not taken twice.
        entries[id]?.offset = next
        touch(id)
        do {
            try await writer.append(bytes)
        } catch {
            drop(id, of: writer)
            throw error
        }
        touch(id)
        return next
    }

    /// Ends a body.
    ///
    /// - Parameter size: How many bytes the caller has handed over.
    /// - Returns: The body, which is durable and is the caller's to remove.
    /// - Throws: As ``append(_:to:at:)``.
    package func finish(_ id: String, size: Int64) async throws(QueueError) -> SpooledBody {
        let writer = try entry(id, at: size).writer
        drop(id, of: writer)
        return try await writer.finish()
    }

    /// Gives a body up. Does nothing when there is none.
    package func giveUp(_ id: String) async {
        await entries.removeValue(forKey: id)?.writer.giveUp()
    }

    /// Gives all bodies up.
    package func giveUpAll() async {
        for id in entries.keys { await giveUp(id) }
    }

    // MARK: Entries

    private func entry(_ id: String, at offset: Int64) throws(QueueError) -> Entry {
        guard let entry = entries[id] else {
            throw QueueError(.unknownStagedBody, "no body \(quoted(id)) is being handed over")
        }
        guard offset == entry.offset else {
            throw QueueError(
                .wrongOffset,
                "body \(quoted(id)) goes on at \(entry.offset), not at \(offset)",
                offset: entry.offset
            )
        }
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
                await self?.giveUpIdle()
            }
        }
    }

    private func nextDue() -> Time.Instant? {
        let oldest = entries.values.map(\.lastUse).min()
        if oldest == nil { expiry = nil }
        return oldest?.advanced(by: patience)
    }

    private func giveUpIdle() async {
        let now = clock.now
        for (id, entry) in entries where entry.lastUse.advanced(by: patience) <= now { await giveUp(id) }
    }
}
