internal import Foundation
internal import GRDB

/// Edits single requests: cancels (T5), retries (T7), holds and releases them.
extension StoreTransaction {
    mutating func edit(_ edit: QueueEdit, _ id: String) throws -> EditResult {
        guard let request = try request(id: id) else { return try editHistory(edit, id) }
        guard try !(edit.releases && isUnreadable(request.sequence)) else {
            return .refused(request.state.name)
        }
        do {
            try move(request, by: try event(of: edit, request))
        } catch is RequestLifecycle.Refusal {
            return .refused(request.state.name)
        }
        if case .retry(newKey: true, _) = edit { try renewKey(of: request.sequence) }
        changedLanes.insert(request.lane)
        if edit == .release { releasedLanes.insert(request.lane) }
        return .done(try self.request(id: id)?.state.name ?? .cancelled)
    }

    /// Returns the event for an edit. A retry, and a release after a failed dependency, first remove the request's
    /// dependencies.
    private func event(of edit: QueueEdit, _ request: StoredRequest) throws -> RequestLifecycle.Event {
        switch edit {
        case .cancel, .withdraw: return .cancelled
        case .hold: return .held
        case .release:
            if request.state.phase == .held(.dependency) { try clearFailedDependency(of: request.sequence) }
            let isBlocked = try isBlocked(request.sequence)
            let due = try request.earliest(from: now)
            return .released(Set(HoldReason.allCases), now: due, isBlocked: isBlocked)
        case .retry:
            if request.token == nil {
                try clearConditions(of: request.sequence)
                try restartLifetime(of: request.sequence)
            }
            return .requeued(now: now)
        }
    }

    /// Returns whether a request is held because it cannot be read, and this is still so. The next claim would
    /// only hold it again.
    func isUnreadable(_ sequence: Int64) throws -> Bool {
        guard let row = try row(StoreStatements.heldForKey, [sequence]) else { return false }
        do { _ = try opened(row) } catch is SealFault { return true }
        return false
    }

    func deleteDependencies(of sequence: Int64) throws {
        try execute("DELETE FROM depends WHERE seq = ?", [sequence])
    }

    /// Removes the request's dependencies, and the recorded error about the failed one.
    private func clearFailedDependency(of sequence: Int64) throws {
        try deleteDependencies(of: sequence)
        try execute("UPDATE request SET \(StoreStatements.withoutFailedDependency) WHERE seq = ?", [sequence])
    }

    /// Removes everything that a retried request must not wait for:
    ///
    /// - its dependencies, and the recorded error about a failed one,
    /// - its scheduled time,
    /// - the records of 409 responses and of timeouts.
    private func clearConditions(of sequence: Int64) throws {
        try deleteDependencies(of: sequence)
        try execute("UPDATE request SET \(Self.withoutConditions) WHERE seq = ?", [sequence])
    }

    /// The assignments that reset the columns of `request` that can delay a retried request.
    static let withoutConditions = """
        scheduled_at = NULL, conflict_at = NULL, overruns = 0, busy_until = NULL, \(StoreStatements.withoutFailedDependency)
        """

    /// The assignments that restart a request's original time to live. Their arguments are ``moment``.
    static let restartedLifetime = """
        boot = :boot, boot_expire_at = :sinceBoot + life,
        expire_at = :sinceBoot + life + (SELECT clock_offset FROM meta)
        """

    /// Restarts the request's original time to live.
    private func restartLifetime(of sequence: Int64) throws {
        try execute(
            "UPDATE request SET \(Self.restartedLifetime) WHERE seq = :seq",
            moment &+ ["seq": sequence]
        )
    }

    /// Gives the request a new random idempotency key, if it has one.
    func renewKey(of sequence: Int64) throws {
        guard let found = try row(StoreStatements.findRequest, [sequence]) else { return }
        let opened = try openedForCaller(found)
        var content = opened.content
        guard let key = content.key else { return }
        content.key = KeyHeader(name: key.name, value: IdempotencyKey.randomValue(), isQuoted: key.isQuoted)
        try write(content, to: opened.row)
    }
}

extension StoreTransaction {
    /// Stores other content in a row of `request`, encrypted if the row is. The row must be decrypted, and have the values
    /// of ``BoundContent`` that the table will have.
    ///
    /// - Throws: ``QueueError``, if the row is encrypted and the content cannot be.
    func write(_ content: RequestContent, to row: StoredRow) throws {
        let text = content.stored
        let values: [DatabaseValue] =
            try row.isNull("key_id")
            ? [text.databaseValue] : sealed([.content], of: row.replacing("content", with: text))
        // `key_id` stays, because the body may still be encrypted with that key. A ciphertext names its own key.
        try execute(
            "UPDATE request SET content = ? WHERE seq = ?",
            StatementArguments(values) + [try row["seq"] as Int64]
        )
    }
}

// MARK: - Finished requests

extension StoreTransaction {
    private mutating func editHistory(_ edit: QueueEdit, _ id: String) throws -> EditResult {
        guard let row = try row("SELECT * FROM history WHERE id = ?", [id]) else { return .unknown }
        return try editHistory(edit, row)
    }

    /// - Throws: ``QueueError``: `quotaExceeded` or `queueFull` if there is no room for a retry. Nothing was changed.
    mutating func editHistory(_ edit: QueueEdit, _ row: StoredRow) throws -> EditResult {
        let state: QueuedRequest.State = try row["state"]
        switch edit {
        case .retry(let newKey, let quota):
            guard try isRetriable(row) else { return .refused(state) }
            try checkCapacity(forRetryOf: row, within: quota)
            try restore(row)
            if newKey { try renewKey(of: try row["seq"]) }
            return .done(.pending)
        case .cancel where state == .dead:
            try cancelDead(row)
            return .done(.cancelled)
        case .cancel, .withdraw, .hold, .release: return .refused(state)
        }
    }

    private func isRetriable(_ row: StoredRow) throws -> Bool {
        guard try row["state"] == QueuedRequest.State.dead else { return false }
        return try row["is_whole"] && !isTaken(row)
    }

    /// Returns whether another request with the same replace key is waiting.
    private func isTaken(_ row: StoredRow) throws -> Bool {
        guard let key = try row["replace_key"] as String? else { return false }
        return try waiting(withKey: key, inLane: try lane(of: row).id) != nil
    }

    private func lane(of row: StoredRow) throws -> StoredLane {
        try lane(of: LaneKey(finished: row, origin: Origin(url: try row["url"])))
    }

    /// Makes a dead request pending again (T7), at its old position, with the same key and its full original time to
    /// live.
    private mutating func restore(_ row: StoredRow) throws {
        try require(.requeued(now: now), ofDead: row)
        let lane = try lane(of: row).id
        let sequence: Int64 = try row["seq"]
        try execute(
            """
            INSERT INTO request (lane_id, state, next_at, last_status, last_error, \(QueueSchema.fixedContent))
            SELECT :lane, 'pending', :now, last_status, last_error, \(QueueSchema.fixedContent) FROM history
            WHERE seq = :seq
            """,
            ["lane": lane, "now": now.milliseconds, "seq": sequence]
        )
        try restartLifetime(of: sequence)
        environment.restored.increase()
        try execute("DELETE FROM history WHERE seq = ?", [sequence])
        try execute("DELETE FROM response WHERE seq = ?", [sequence])
        changedLanes.insert(lane)
    }

    /// Cancels a dead request (T5), and deletes its body, which was kept for a retry. Its webhook was enqueued when it
    /// was given up, and is not enqueued again.
    private mutating func cancelDead(_ row: StoredRow) throws {
        try require(.cancelled, ofDead: row)
        let sequence: Int64 = try row["seq"]
        let freed: Int64 = try row["is_whole"] ? row["body_bytes"] : 0
        try execute(StoreStatements.reservePosition)
        try requireChange(of: sequence)
        try execute(StoreStatements.cancelDead, moment &+ ["freed": freed, "seq": sequence])
        try execute("UPDATE meta SET history_bytes = history_bytes - ?", [freed])
        try freeBody(sequence, file: try row["body_file"])
    }

    /// - Throws: ``RequestLifecycle/Refusal`` if the state machine does not permit the event for a dead request.
    private func require(_ event: RequestLifecycle.Event, ofDead row: StoredRow) throws {
        var state = try RequestLifecycle(
            phase: .finished(.dead(.imported, reason: "")),
            attempts: row["attempts"],
            deferrals: row["deferrals"],
            rules: RequestRules(row: row, EnqueueOptions(row: row))
        )
        try state.apply(event)
    }
}
