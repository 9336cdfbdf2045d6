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
        try removeSecrets(of: request)
        try execute("UPDATE request SET credential = ? WHERE seq = ?", [name, request.sequence])
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

    /// Removes the secrets that versions before 5 stored with a request, because its credential replaces them, and
    /// corrects the size of the request.
    ///
    /// - Throws: ``QueueError`` if the request is encrypted and cannot be read.
    private func removeSecrets(of request: StoredRequest) throws {
        let row = try openedForCaller(request.row)
        let (url, headers): (String, String) = (try row["url"], try row["headers"])
        let stored = QueueRequest(method: "GET", url: url, headers: HeaderText.decode(headers))
        let clean = SecretRemoval.apply(to: stored)
        guard clean.url != stored.url || clean.headers != stored.headers else { return }
        var text = HeaderText.encode(clean.headers)
        if !row.isNull("key_id") {
            text = try environment.sealer.seal(text, .headers, of: try row["id"])
        }
        try execute(
            "UPDATE request SET url = ?, headers = ? WHERE seq = ?",
            [clean.url, text, request.sequence]
        )
        let bytes = url.utf8.count + headers.utf8.count
        let remaining = clean.url.utf8.count + HeaderText.encode(clean.headers).utf8.count
        try shrink(request, by: Int64(bytes - remaining))
    }

    /// Reduces the stored size of a request, and the counters that contain it. Triggers update these only when a row is
    /// inserted or deleted.
    private func shrink(_ request: StoredRequest, by bytes: Int64) throws {
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
        triedBefore time: Timestamp?,
        after place: Int64
    ) throws -> Int64? {
        let held = try rows(
            StoreStatements.heldForCredential,
            [
                "name": name, "latest": time?.milliseconds ?? .max, "after": place,
                "limit": Self.releasedAtOnce,
            ]
        )
        for row in held { try releaseForCredential(try StoredRequest(row: row)) }
        return held.count < Self.releasedAtOnce ? nil : try held.last?.place("seq", after: place)
    }

    private mutating func releaseForCredential(_ request: StoredRequest) throws {
        let isBlocked = try isBlocked(request.sequence)
        let due = try request.earliest(from: now)
        try move(request, by: .credentialChanged(now: due, isBlocked: isBlocked))
        changedLanes.insert(request.lane)
    }
}
