internal import GRDB

/// A row of the table `request`, with the columns that its state consists of.
struct StoredRequest {
    let sequence: Int64
    let id: String
    let lane: Int64
    var state: RequestLifecycle
    /// The token of the lease; `nil` if the request is not in flight.
    let token: String?
    let replaceKey: String?
    let bodyBytes: Int64
    let bodyFile: String?
    let options: EnqueueOptions
    let row: StoredRow

    /// Returns the earliest time at which the request may be sent. This is the latest of three times:
    ///
    /// - `now`,
    /// - the request's scheduled time,
    /// - the time at which the server should be done with the previous attempt, but at most 24 hours from now, because
    ///   the wall clock may have been ahead before a reboot.
    func earliest(from now: Timestamp) throws -> Timestamp {
        let scheduled = try (row["scheduled_at"] as Int64?).map(Timestamp.init(milliseconds:))
        let idle = try (row["busy_until"] as Int64?).map(Timestamp.init(milliseconds:))
        return max(now, scheduled ?? now, min(idle ?? now, now + AttemptTimeouts.longest))
    }

    init(row: StoredRow) throws {
        self.row = row
        sequence = try row["seq"]
        id = try row["id"]
        lane = try row["lane_id"]
        options = try EnqueueOptions(row: row)
        state = try RequestLifecycle(row: row, options)
        token = try row["lease_token"]
        replaceKey = try row["replace_key"]
        bodyBytes = try row["body_bytes"]
        bodyFile = try row["body_file"]
    }
}

extension RequestLifecycle {
    fileprivate init(row: StoredRow, _ options: EnqueueOptions) throws {
        let phase: Phase =
            switch try row["state"] as String {
            case "inflight":
                .inflight(
                    try Lease(token: row["lease_token"], ownerEpoch: row["owner_epoch"]),
                    pendingEdit: try row["wish"]
                )
            case "held": .held(HoldReason(rawValue: try row["hold_reason"]) ?? .ambiguous)
            case "blocked": .blocked
            default: .pending(due: Timestamp(milliseconds: try row["next_at"]))
            }
        try self.init(
            phase: phase,
            attempts: row["attempts"],
            deferrals: row["deferrals"],
            rules: RequestRules(row: row, options)
        )
    }

    /// The state in the public API.
    package var name: QueuedRequest.State {
        switch phase {
        case .staging, .blocked: .blocked
        case .pending: .pending
        case .inflight: .inflight
        case .held: .held
        case .finished(.delivered): .delivered
        case .finished(.dead): .dead
        case .finished(.cancelled): .cancelled
        case .finished(.superseded): .superseded
        }
    }
}

extension RequestRules {
    init(row: StoredRow, _ options: EnqueueOptions) throws {
        try self.init(mayBeSentTwice: row["is_repeatable"], maximumAttempts: options.maximumAttempts)
    }
}

extension EnqueueOptions {
    /// Creates the options of a row of `request` or `history`, except those of its lane and its times.
    init(row: StoredRow) throws {
        self.init(stored: try row["options"])
        id = try row["id"]
        priority = try row["priority"]
        replaceKey = try row["replace_key"]
        credential = try row["credential"]
        tag = try row["tag"]
    }
}

extension RequestContent {
    /// Creates the content of a decrypted row.
    init(_ row: StoredRow) throws { try self.init(stored: row["content"]) }
}

extension StoreTransaction {
    func request(_ sequence: Int64) throws -> StoredRequest? {
        try row(StoreStatements.findRequest, [sequence]).map(StoredRequest.init(row:))
    }

    func request(id: String) throws -> StoredRequest? {
        try row(StoreStatements.findRequestByID, [id]).map(StoredRequest.init(row:))
    }

    /// Applies an event to a request, and writes its new state and the effects on other requests.
    ///
    /// - Parameter outcome: The outcome of the attempt that causes the event; `nil` for any other event.
    mutating func move(
        _ request: StoredRequest,
        by event: RequestLifecycle.Event,
        _ outcome: Conclusion? = nil
    ) throws {
        var moved = request
        try moved.state.apply(event)
        if let duplicate = try waitingDuplicate(of: moved) {
            if duplicate.sequence > request.sequence {
                try transferDependents(of: request.sequence, to: duplicate.sequence)
                try moved.state.apply(.replaced)
            } else {
                try transferDependents(of: duplicate.sequence, to: request.sequence)
                try move(duplicate, by: .replaced)
            }
        }
        if case .finished(let ending) = moved.state.phase {
            try finish(moved, as: ending, outcome)
        } else {
            try update(moved, outcome)
        }
    }

    /// Returns the waiting request with the same replace key, if the given request was in flight and waits again; `nil`
    /// if there is none. Only the newer of the two may remain.
    private func waitingDuplicate(of request: StoredRequest) throws -> StoredRequest? {
        guard let key = request.replaceKey, request.token != nil, request.state.isWaiting else { return nil }
        return try waiting(withKey: key, inLane: request.lane)
    }

    /// Makes the requests that depend on a superseded request depend on its successor instead. If the successor itself
    /// waits for one of these requests, the new dependency would form a cycle. The dependency of that request then
    /// counts as failed.
    mutating func transferDependents(of sequence: Int64, to successor: Int64) throws {
        guard try row(StoreStatements.dependents, [sequence]) != nil else { return }
        try removeDependency(of: successor, on: sequence)
        if try row(StoreStatements.isNeeded, ["seq": successor, "other": sequence]) == nil {
            try execute("UPDATE OR REPLACE depends SET on_seq = ? WHERE on_seq = ?", [successor, sequence])
        }
        try resolveDependents(of: sequence, isDelivered: false)
    }

    /// Removes a successor's dependency on the request that it replaces, and unblocks the successor if that was its
    /// last dependency.
    private mutating func removeDependency(of successor: Int64, on sequence: Int64) throws {
        try execute("DELETE FROM depends WHERE seq = ? AND on_seq = ? AND is_any = 1", [successor, sequence])
        guard database.changesCount > 0, let request = try request(successor),
            request.state.phase == .blocked,
            try !isBlocked(successor)
        else { return }
        try move(request, by: .unblocked(now: try request.earliest(from: now)))
        changedLanes.insert(request.lane)
    }

    /// Returns the waiting request with a replace key; `nil` if there is none.
    func waiting(withKey key: String, inLane lane: Int64) throws -> StoredRequest? {
        try row(StoreStatements.findReplaceable, [lane, key]).map(StoredRequest.init(row:))
    }

    private func update(_ request: StoredRequest, _ outcome: Conclusion?) throws {
        let place: StatementArguments = [
            "seq": request.sequence, "fence": request.token, "status": outcome?.status,
            "detail": outcome?.detail, "now": now.milliseconds,
        ]
        try execute(StoreStatements.updateState, request.state.columns &+ place)
        try requireChange(of: request.sequence)
    }
}

extension RequestLifecycle {
    /// The state as columns of the table `request`, which contains only unfinished requests.
    fileprivate var columns: StatementArguments {
        let (due, lease, pendingEdit, reason): (Timestamp?, Lease?, PendingEdit?, HoldReason?) =
            switch phase {
            case .pending(let due): (due, nil, nil, nil)
            case .inflight(let lease, let pendingEdit): (nil, lease, pendingEdit, nil)
            case .held(let reason): (nil, nil, nil, reason)
            case .blocked: (nil, nil, nil, nil)
            case .staging, .finished: preconditionFailure("such requests are not in the table")
            }
        return [
            "state": name.rawValue, "due": due?.milliseconds, "token": lease?.token,
            "epoch": lease?.ownerEpoch, "wish": pendingEdit?.rawValue, "reason": reason?.rawValue,
            "attempts": attempts, "deferrals": deferrals,
        ]
    }
}
