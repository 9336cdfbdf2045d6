internal import GRDB

/// A row of the table `lane`.
struct StoredLane {
    let id: Int64
    let key: LaneKey
    /// The end of the closure, in milliseconds by the boot clock; `nil` if no server closed the lane.
    let notBefore: Int64?
    let isPaused: Bool
    /// The lane's unfinished requests.
    let load: StoreTransaction.Load
    /// The unfinished requests of the whole queue.
    let queueLoad: StoreTransaction.Load

    init(row: StoredRow) throws {
        id = try row["id"]
        key = try LaneKey(row: row)
        notBefore = try row.isNull("not_before") ? nil : row["boot_not_before"]
        isPaused = try row["is_paused"]
        load = try StoreTransaction.Load(requests: row["requests"], bytes: row["bytes"])
        queueLoad = try StoreTransaction.Load(requests: row["all_requests"], bytes: row["all_bytes"])
    }

    var isEmpty: Bool { load.requests == 0 }

    /// Returns the lane's record for the scheduler, with the due time read from the database.
    func record(in transaction: StoreTransaction) throws -> LaneRecord {
        var record = record(due: isEmpty ? nil : try transaction.due(inLane: self), in: transaction)
        record.wasEmpty = isEmpty
        return record
    }

    func record(due: Duration?, in transaction: StoreTransaction) -> LaneRecord {
        let closure = notBefore.map {
            min(
                max(.zero, .milliseconds($0 - transaction.clock.sinceBoot)),
                transaction.settings.longestClosure
            )
        }
        return LaneRecord(
            id: id,
            key: key,
            notBefore: closure == .zero ? nil : closure,
            due: isPaused ? nil : due.map { min($0, transaction.settings.longestDelay) },
            isPaused: isPaused
        )
    }
}

extension LaneKey {
    /// Creates the key from a row of the table `lane`.
    init(row: StoredRow) throws {
        try self.init(
            origin: Origin(scheme: row["scheme"], host: row["host"], port: row["port"]),
            label: row["label"],
            mode: row["mode"],
            constraints: RequestConstraints(stored: row["lane_constraints"]),
            submitter: row["lane_submitter"]
        )
    }

    /// Creates the key of the lane in which a finished request was.
    ///
    /// - Parameters:
    ///   - row: A row of `history`, which does not store the scheme and the port of the lane.
    ///   - origin: The origin of the request's URL.
    init(finished row: StoredRow, origin: Origin) throws {
        try self.init(
            origin: origin,
            label: row["label"],
            mode: row["mode"],
            constraints: EnqueueOptions(stored: row["options"]).constraints,
            submitter: row["submitter"]
        )
    }
}

extension StoreTransaction {
    func lane(_ id: Int64) throws -> StoredLane? {
        try row(StoreStatements.findLane, [id]).map(StoredLane.init(row:))
    }

    /// Returns the lane with this key, and creates it if there is none.
    func lane(of key: LaneKey) throws -> StoredLane {
        if let known = try knownLane(of: key) { return known }
        try execute(StoreStatements.insertLane, key.arguments)
        return try knownLane(of: key)!
    }

    /// Returns the lane with this key; `nil` if there is none.
    func knownLane(of key: LaneKey) throws -> StoredLane? {
        try row(StoreStatements.findLaneByKey, key.arguments).map(StoredLane.init(row:))
    }

    /// Returns the time until the lane's next request may be due; `nil` if none is pending or the lane is paused. It is
    /// at most ``StoreSettings/longestDelay``, even if the next request is scheduled for later. The limit makes the
    /// scheduler check the lane again, because requests seem to be due far in the future if the wall clock was
    /// ahead before a reboot.
    func due(inLane lane: StoredLane) throws -> Duration? {
        guard !lane.isPaused else { return nil }
        let found: StoredRow? =
            switch lane.key.mode {
            case .parallel: try row(StoreStatements.dueInParallelLane, ["lane": lane.id])
            case .fifo: try row(StoreStatements.headOfLane, ["lane": lane.id])
            }
        guard let next = try found?["next_at"] as Int64? else { return nil }
        return min(until(Timestamp(milliseconds: next)), settings.longestDelay)
    }

    /// Releases the requests of the selected lanes that are held for one of the reasons.
    mutating func release(_ reasons: Set<HoldReason>, in selection: LaneSelection) throws {
        let selected = selection == .all ? nil : Set(try lanes(in: selection))
        for row in try rows(StoreStatements.lanesWithHeld) {
            let lane: Int64 = try row["lane_id"]
            if selected?.contains(lane) ?? true { try release(reasons, inLane: lane) }
        }
    }

    /// Returns selected lanes with unfinished requests, in the order of their ids.
    func busyLanes(in selection: LaneSelection, after last: Int64, limit: Int) throws -> [LaneRecord] {
        try rows(
            """
            \(StoreStatements.busyLanes) AND id > :last AND \(Self.isSelected)
            ORDER BY id LIMIT :limit
            """,
            ["last": last, "limit": limit] &+ Self.arguments(of: selection)
        )
        .map { try StoredLane(row: $0).record(in: self) }
    }

    /// Opens the selected lanes that servers closed with `Retry-After`.
    ///
    /// - Returns: Those of the lanes that have requests, at most ``QueueStatistics/maximumPausedLanes``, with the
    ///   closures that this ended.
    /// - Throws: ``QueueError``: `unknownLane` if a host or a label is given and there is no such lane.
    func open(_ selection: LaneSelection) throws -> [QueueStatistics.ClosedLane] {
        guard try selection == .all || !lanes(in: selection).isEmpty else { throw selection.unknown }
        let closed = try closedLanes(in: selection)
        try execute(
            "UPDATE lane SET not_before = NULL WHERE not_before IS NOT NULL AND \(Self.isSelected)",
            Self.arguments(of: selection)
        )
        return closed
    }

    /// Returns the selected lanes that have requests and that servers closed with `Retry-After`, at most
    /// ``QueueStatistics/maximumPausedLanes``.
    func closedLanes(in selection: LaneSelection) throws -> [QueueStatistics.ClosedLane] {
        try rows(
            """
            SELECT * FROM lane WHERE not_before > :now AND requests > 0 AND \(Self.isSelected)
            ORDER BY host, label, lane_submitter LIMIT :limit
            """,
            ["now": now.milliseconds, "limit": QueueStatistics.maximumPausedLanes]
                &+ Self.arguments(of: selection)
        )
        .compactMap { row in
            try LaneClosure(lane: row, now: now).map {
                QueueStatistics.ClosedLane(id: try row["id"], try LaneKey(row: row), closure: $0)
            }
        }
    }

    func pauses(in selection: LaneSelection) throws -> LanePauses {
        let meta = try row("SELECT is_paused FROM meta")!
        return LanePauses(isQueuePaused: try meta["is_paused"], lanes: try pausedLanes(in: selection))
    }

    /// Returns the selected lanes that were paused individually, at most ``QueueStatistics/maximumPausedLanes``.
    func pausedLanes(in selection: LaneSelection) throws -> [QueueStatistics.PausedLane] {
        try rows(
            """
            SELECT DISTINCT host, label, lane_submitter FROM lane WHERE is_paused = 1 AND \(Self.isSelected)
            ORDER BY host, label, lane_submitter LIMIT :limit
            """,
            ["limit": QueueStatistics.maximumPausedLanes] &+ Self.arguments(of: selection)
        )
        .map {
            try QueueStatistics.PausedLane(
                host: $0["host"],
                label: $0["label"],
                submitter: $0["lane_submitter"]
            )
        }
    }

    mutating func setPaused(_ isPaused: Bool, lanes selection: LaneSelection?) throws -> Int {
        let lanes = try selection.map { try setPaused(isPaused, matching: $0) } ?? setQueuePaused(isPaused)
        changedLanes.formUnion(lanes)
        return lanes.count
    }

    private func setPaused(_ isPaused: Bool, matching selection: LaneSelection) throws -> [Int64] {
        // A pause of the lanes of all users also applies to new lanes of other users, see `insertLane`.
        try execute(
            """
            UPDATE lane SET is_paused = :paused, pauses_new = :paused AND (pauses_new OR :submitter IS NULL)
            WHERE \(Self.isSelected)
            """,
            ["paused": isPaused] &+ Self.arguments(of: selection)
        )
        return try lanes(in: selection)
    }

    /// Returns the ids of the selected lanes.
    private func lanes(in selection: LaneSelection) throws -> [Int64] {
        try rows("SELECT id FROM lane WHERE \(Self.isSelected)", Self.arguments(of: selection)).map {
            try $0["id"]
        }
    }

    /// The condition that a lane is selected, and its arguments.
    private static let isSelected = """
        host = ifnull(:host, host) AND label = ifnull(:label, label)
        AND (:submitter IS NULL OR lane_submitter = :submitter)
        """

    private static func arguments(of selection: LaneSelection) -> StatementArguments {
        ["host": selection.host, "label": selection.label, "submitter": selection.submitter]
    }

    private func setQueuePaused(_ isPaused: Bool) throws -> [Int64] {
        try execute("UPDATE meta SET is_paused = ?", [isPaused])
        // Resuming the queue also resumes each lane, because a user may have forgotten that a single lane is paused.
        if !isPaused { try execute("UPDATE lane SET is_paused = 0, pauses_new = 0 WHERE is_paused = 1") }
        return try rows("SELECT id FROM lane WHERE requests > 0").map { try $0["id"] }
    }

    /// Deletes lanes that have no requests and are neither paused nor closed. Callers can choose any label for a lane,
    /// so unused lanes would accumulate.
    func deleteUnusedLanes() throws {
        try execute(
            "DELETE FROM lane WHERE requests = 0 AND is_paused = 0 AND ifnull(not_before, 0) <= ?",
            [now.milliseconds]
        )
    }
}

extension LaneKey {
    /// The arguments of `StoreStatements.findLaneByKey` and `StoreStatements.insertLane`.
    fileprivate var arguments: StatementArguments {
        [origin.scheme, origin.host, origin.port, label, mode.rawValue, constraints.description, submitter]
    }
}
