internal import ClientCore
internal import GRDB

/// Changes the credentials of requests, and releases requests that are held because of their credential.
extension StoreTransaction {
    /// The maximum number of held requests that one transaction releases.
    static let releasedAtOnce = 256

    mutating func setCredential(_ name: String, of id: String) throws -> EditResult {
        guard let request = try request(id: id) else {
            let finished = try row("SELECT state FROM history WHERE id = ?", [id])
            return try finished.map { .refused(try $0["state"]) } ?? .unknown
        }
        guard request.state.isWaiting else { return .refused(request.state.name) }
        try replaceCredential(of: request, with: name)
        switch request.state.phase {
        case .held(.auth): try releaseForCredential(request)
        case .pending:
            let due = try request.earliest(from: now).milliseconds
            try execute(
                "UPDATE request SET next_at = min(next_at, ?) WHERE seq = ?",
                [due, request.sequence]
            )
            changedLanes.insert(request.lane)
        default: break
        }
        return .done(try self.request(id: id)?.state.name ?? request.state.name)
    }

    /// Stores the new credential, and removes the signature of a signed URL. The content of an encrypted request is
    /// encrypted again, because it is bound to the URL and the credential.
    ///
    /// - Throws: ``QueueError`` if the request is encrypted, and cannot be read or encrypted.
    private func replaceCredential(of request: StoredRequest, with name: String) throws {
        let row = try openedForCaller(request.row)
        let url: String = try row["url"]
        let clean = SecretQueryItems.removing(from: url)
        try execute(
            "UPDATE request SET url = ?, credential = ? WHERE seq = ?",
            [clean, name, request.sequence]
        )
        let changed = row.replacing("url", with: clean).replacing("credential", with: name)
        try write(try RequestContent(row), to: changed)
        try shrink(request, by: Int64(url.utf8.count - clean.utf8.count))
    }

    /// Reduces the stored size of a request, and the counters that include this size. Triggers update these only when a
    /// row is inserted or deleted.
    private func shrink(_ request: StoredRequest, by bytes: Int64) throws {
        guard bytes > 0 else { return }
        let removed = min(bytes, try request.row["size"])
        try execute("UPDATE request SET size = size - ? WHERE seq = ?", [removed, request.sequence])
        try execute("UPDATE lane SET bytes = bytes - ? WHERE id = ?", [removed, request.lane])
        try execute("UPDATE meta SET bytes = bytes - ?", [removed])
    }

    /// Releases the next requests that are held because of a credential.
    ///
    /// - Parameters:
    ///   - time: The time before which the last attempt must have ended; `nil` for any.
    ///   - place: The number of the request after which the search begins.
    /// - Returns: The number of the last released request; `nil` if there may be no more.
    mutating func releaseRequests(
        heldForCredential name: String,
        triedBefore time: ContinuousClock.Instant?,
        after place: Int64
    ) throws -> Int64? {
        let held = try rows(
            StoreStatements.heldForCredential,
            [
                "name": name, "latest": time.map(date(of:))?.milliseconds ?? .max, "after": place,
                "limit": Self.releasedAtOnce,
            ]
        )
        for row in held { try releaseForCredential(try StoredRequest(row: row)) }
        return held.count < Self.releasedAtOnce ? nil : try held.last?.place("seq", after: place)
    }

    /// Returns the date of a recent moment as the stored dates show it, rounded up.
    private func date(of moment: ContinuousClock.Instant) -> Timestamp {
        let elapsed = moment.duration(to: .now)
        return environment.clock.read().wall - elapsed + .milliseconds(1)
    }

    private mutating func releaseForCredential(_ request: StoredRequest) throws {
        let isBlocked = try isBlocked(request.sequence)
        let due = try request.earliest(from: now)
        try move(request, by: .credentialChanged(now: due, isBlocked: isBlocked))
        changedLanes.insert(request.lane)
    }
}
