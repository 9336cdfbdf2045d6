internal import Foundation
internal import GRDB

/// Stores new requests (transition T1).
extension StoreTransaction {
    mutating func enqueue(_ requests: [NewRequest]) throws -> [EnqueuedRequest] {
        try environment.sealer.requireUnlocked()
        try DependencyGraph.check(requests)
        let batch = requests.count > 1 ? Set(requests.map(\.id)) : []
        var pending = Pending()
        let enqueued = try requests.map { try enqueue($0, of: batch, &pending) }
        try complete(pending)
        return enqueued
    }

    /// The changes that can be written only after all requests of a batch are stored.
    private struct Pending {
        /// For a stored request (`place` is its sequence number), the ids of the dependencies that were not in the
        /// table `request` when it was stored.
        var missing: [(place: Int64, ids: [String])] = []
        /// The replaced requests with the requests that replace them, by their sequence numbers.
        var replacements: [(old: Int64, new: Int64)] = []
    }

    private mutating func complete(_ pending: Pending) throws {
        // The missing dependency may be a later request of the batch, which is stored by now. The request that depends
        // on it may itself have been replaced or dropped by a later one.
        for (place, ids) in pending.missing {
            guard let request = try request(place) else { continue }
            guard let lost = try depend(place, on: ids).first, request.state.phase == .blocked else {
                continue
            }
            try hold(request, because: "depends on \(quoted(lost)), which will not be delivered")
        }
        // Only after the loop above are all dependencies known. A replacing request may wait for one of the requests
        // that depend on the replaced one.
        for (old, new) in pending.replacements { try transferDependents(of: old, to: new) }
        for (_, new) in pending.replacements where try request(new) == nil {
            try resolveDependents(of: new, isDelivered: false)
        }
    }

    /// Stores one request. It throws any refusal before it writes, because other requests share the transaction. There
    /// are two exceptions. ``freeCapacity(for:in:replacing:)`` may already have dropped other requests. A new lane may
    /// have been written; the next ``expire()`` deletes it if it has no requests.
    private mutating func enqueue(
        _ new: NewRequest,
        of batch: Set<String>,
        _ pending: inout Pending
    ) throws -> EnqueuedRequest {
        if let known = try known(new) { return known }
        if case .gone = new.body {
            throw QueueError(
                .bodyFileUnusable,
                "the stored request \(quoted(new.id)) was removed during the call, and its body is no longer "
                    + "available; enqueue it again with a body"
            )
        }
        let lane = try lane(of: new.lane)
        let isBlocked = try isBlocked(new, in: batch)
        let replaced = try replaced(by: new, in: lane)
        let sent = try sent(withKeyOf: new, in: lane)
        guard try freeCapacity(for: new, in: lane, replacing: replaced) else {
            return new.dropped(from: lane, in: self)
        }
        let due = dueTime(of: new)
        var state = RequestLifecycle(rules: RequestRules(mayBeSentTwice: true))
        try state.apply(.accepted(due: due, isBlocked: isBlocked || sent != nil))
        if let replaced {
            try move(replaced, by: .replaced)
            // In a FIFO lane, other requests may have waited behind the replaced one.
            changedLanes.insert(lane.id)
        }
        let place = try insert(new, lane: lane.id, state: state, due: due)
        if let sent {
            try execute("INSERT INTO depends (seq, on_seq, is_any) VALUES (?, ?, 1)", [place, sent])
        }
        let unknown = try depend(place, on: new.options.dependencies)
        if !unknown.isEmpty { pending.missing.append((place, unknown)) }
        if let replaced { pending.replacements.append((replaced.sequence, place)) }
        return accepted(new, in: lane, state: state, due: due)
    }

    private mutating func accepted(
        _ new: NewRequest,
        in lane: StoredLane,
        state: RequestLifecycle,
        due: Timestamp
    ) -> EnqueuedRequest {
        let wait = state.name == .pending ? until(due) : nil
        let record = lane.record(due: wait, in: self)
        changedRecords.append(record)
        return EnqueuedRequest(
            id: new.id,
            lane: record,
            outcome: .accepted,
            isBehindOthers: lane.load.requests > 0,
            idempotencyKey: new.key?.value,
            state: state.name,
            due: wait,
            status: nil,
            lastError: nil,
            durability: new.options.durability
        )
    }

    /// Returns the waiting request with the same replace key, which the new one replaces; `nil` if there is none.
    private func replaced(by new: NewRequest, in lane: StoredLane) throws -> StoredRequest? {
        guard let key = new.options.replaceKey, let found = try waiting(withKey: key, inLane: lane.id) else {
            return nil
        }
        try checkIndependence(of: new, from: found.id)
        return found
    }

    /// Returns the sequence number of the request in flight with the same replace key; `nil` if there is none. The new
    /// request must wait until that one has ended, in any way. If both were sent in the wrong order, the server would
    /// end up with the older state.
    private func sent(withKeyOf new: NewRequest, in lane: StoredLane) throws -> Int64? {
        guard let key = new.options.replaceKey,
            let row = try row(StoreStatements.findSentWithKey, [lane.id, key])
        else { return nil }
        try checkIndependence(of: new, from: try row["id"])
        return try row["seq"]
    }

    /// Throws if another user has enqueued the stored request with the same id. The new one does not repeat it then,
    /// even if its content is the same: the other user may have cancelled it, or given it another credential.
    ///
    /// - Parameter row: A row with the column `submitter`.
    private func checkSubmitter(of new: NewRequest, against row: StoredRow) throws {
        let owner: UInt32? = try row["submitter"]
        guard new.options.submitter.mayChange(owner) else {
            throw QueueError(.notSubmitter, "\(quoted(new.id)) belongs to another user")
        }
        guard let owner, owner != new.options.submitter?.user else { return }
        throw QueueError(
            .idConflict,
            "the id \(quoted(new.id)) already belongs to a request of the user \(owner); choose another id"
        )
    }

    /// Throws if the new request depends on the request that it would replace or wait for.
    private func checkIndependence(of new: NewRequest, from id: String) throws {
        guard new.options.dependencies.contains(id) else { return }
        throw QueueError(
            .cyclicDependency,
            "the request depends on \(quoted(id)), which has the same replace key; remove the dependency, or use "
                + "another replace key"
        )
    }

    private func dueTime(of new: NewRequest) -> Timestamp {
        max(now, new.options.notBefore.map { Timestamp($0) } ?? now)
    }

    /// Returns whether a request with this id is stored. This is checked for every new request and is rarely true.
    /// Reading a single number takes less time than reading a row.
    func isKnown(_ id: String) throws -> Bool {
        try Bool.fetchOne(try database.cachedStatement(sql: StoreStatements.isKnown), arguments: [id])!
    }

    /// Returns the stored request with the same id, finished or not; `nil` if there is none.
    ///
    /// - Throws: ``QueueError`` with `notSubmitter` or `idConflict` if it belongs to another user, and with
    ///   `idConflict` if its content differs from the content of the new request.
    private func known(_ new: NewRequest) throws -> EnqueuedRequest? {
        guard try isKnown(new.id), let found = try row(StoreStatements.findKnown, ["id": new.id]) else {
            return nil
        }
        try checkSubmitter(of: new, against: found)
        try checkContent(of: new)
        let (row, content) = try openedForCaller(found)
        if new.options.durability == .full { try touch() }
        return try EnqueuedRequest(
            id: new.id,
            lane: LaneRecord(id: 0, key: new.lane, notBefore: nil, due: nil, isPaused: false),
            outcome: .known,
            isBehindOthers: false,
            idempotencyKey: content.key?.value,
            state: row["state"],
            due: nil,
            status: row["last_status"],
            lastError: row["last_error"],
            durability: new.options.durability
        )
    }

    func insert(
        _ new: NewRequest,
        lane: Int64,
        state: RequestLifecycle,
        due: Timestamp
    ) throws -> Int64 {
        let options = new.options
        let end = min(Timestamp(options.end(from: now.date)), now + options.timeToLive)
        let life = end.milliseconds - now.milliseconds
        let times = RequestTimes(
            due: due.milliseconds,
            scheduled: options.notBefore.map { _ in due.milliseconds },
            created: now.milliseconds,
            life: life,
            boot: environment.boot,
            bootExpiry: clock.sinceBoot + life
        )
        return try insert(new, lane: lane, state: state.name, size: new.size, times)
    }

    /// Stores a request with its body, and returns its number.
    ///
    /// - Parameter size: The bytes that count towards the limits.
    func insert(
        _ new: NewRequest,
        lane: Int64,
        state: QueuedRequest.State,
        size: Int64,
        _ times: RequestTimes
    ) throws -> Int64 {
        let options = new.options
        let content = try SealedContent(new, by: sealerForWriting())
        try execute(
            StoreStatements.insertRequest,
            [
                new.id, lane, state.rawValue, times.due, times.scheduled, options.priority, times.created,
                times.life, times.boot, times.bootExpiry, new.method, new.url, content.content, content.keyID,
                size, new.body.size, new.body.fileName, content.bodyKey, new.isRepeatable, new.isDroppable,
                options.replaceKey, options.credential, options.tag, options.submitter?.user, options.stored,
            ]
        )
        let sequence = database.lastInsertedRowID
        if let body = content.body { try execute(StoreStatements.insertBody, [sequence, body]) }
        return sequence
    }
}

/// The times of a new row of `request`, in milliseconds.
struct RequestTimes {
    let due: Int64
    let scheduled: Int64?
    let created: Int64
    let life: Int64
    /// The boot to which ``bootExpiry`` belongs.
    let boot: Int64
    let bootExpiry: Int64
}

extension NewRequest {
    fileprivate func dropped(from lane: StoredLane, in transaction: StoreTransaction) -> EnqueuedRequest {
        EnqueuedRequest(
            id: id,
            lane: lane.record(due: nil, in: transaction),
            outcome: .dropped,
            isBehindOthers: false,
            idempotencyKey: nil,
            state: .dead,
            due: nil,
            status: nil,
            lastError: nil,
            durability: options.durability
        )
    }
}

// MARK: - Dependencies

extension StoreTransaction {
    /// Returns whether the request must wait for a dependency that is not delivered yet. Dependencies in the same batch
    /// count as not delivered.
    ///
    /// - Throws: ``QueueError`` with `unknownDependency` if a dependency is unknown or will never be delivered.
    private func isBlocked(_ new: NewRequest, in batch: Set<String>) throws -> Bool {
        // Checks all dependencies, so that every unknown id is refused.
        try !new.options.dependencies.filter { try !isDelivered($0, batch) }.isEmpty
    }

    private func isDelivered(_ id: String, _ batch: Set<String>) throws -> Bool {
        if try row("SELECT 1 FROM request WHERE id = ?", [id]) != nil { return false }
        let state = try row("SELECT state FROM history WHERE id = ?", [id])
            .map { try $0["state"] as QueuedRequest.State }
        switch state {
        case .delivered?: return true
        case nil where batch.contains(id): return false
        case nil:
            throw QueueError(
                .unknownDependency,
                "the dependency \(quoted(id)) is unknown"
            )
        case let state?:
            throw QueueError(
                .unknownDependency,
                "the dependency \(quoted(id)) is \(state.rawValue)"
            )
        }
    }

    /// Stores the dependencies of a request.
    ///
    /// - Returns: The dependencies that cannot be waited for yet: those that come later in the batch, and those that
    ///   were dropped to make room for this request.
    private func depend(_ sequence: Int64, on ids: [String]) throws -> [String] {
        try ids.filter { id in
            try execute(
                "INSERT OR IGNORE INTO depends (seq, on_seq) SELECT ?, seq FROM request WHERE id = ?",
                [sequence, id]
            )
            guard let known = try row(StoreStatements.findKnown, ["id": id]) else { return true }
            let state: QueuedRequest.State = try known["state"]
            return state.isFinal && state != .delivered
        }
    }
}

/// Finds requests that wait for each other, so that none of them would be sent.
extension Database {
    /// Returns why a request must not depend on others: the first of them also waits for the request itself, directly,
    /// through other requests or because of its position in a FIFO lane. `nil` if none does.
    ///
    /// - Parameters:
    ///   - sequence: The request, which must already have these dependencies.
    ///   - others: The sequence numbers of its dependencies.
    func cycle(of sequence: Int64, dependingOn others: [Int64]) throws -> String? {
        for other in others where try isNeeded(sequence, by: other) {
            let id: String? = try row(StoreStatements.findRequest, [other])?["id"]
            return "depends on \(quoted(id ?? "number \(other)")), which also waits for this request"
        }
        return nil
    }

    /// Returns whether a request waits for another one.
    private func isNeeded(_ sequence: Int64, by other: Int64) throws -> Bool {
        try row(StoreStatements.isNeeded, ["seq": other, "other": sequence]) != nil
    }
}
