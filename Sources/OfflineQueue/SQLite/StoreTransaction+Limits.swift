internal import GRDB

/// Checks the limits against the counts in the database.
extension StoreTransaction {
    static let dropReason = "dropped: the queue was full"

    struct Load {
        var requests = 0
        var bytes: Int64 = 0

        static func + (left: Load, right: Load) -> Load {
            Load(requests: left.requests + right.requests, bytes: left.bytes + right.bytes)
        }

        static func - (left: Load, right: Load) -> Load {
            Load(requests: left.requests - right.requests, bytes: left.bytes - right.bytes)
        }
    }

    /// Returns whether a new request fits. `false` means that it must be dropped.
    ///
    /// - Throws: ``QueueError`` with `queueFull`. With ``FullQueuePolicy/dropOldest`` requests may have been dropped
    ///   before it turns out that there are no more to drop.
    mutating func freeCapacity(
        for new: NewRequest,
        in lane: StoredLane,
        replacing replaced: StoredRequest?
    ) throws -> Bool {
        try checkSize(of: new)
        try checkDisk(for: new)
        let freed = try replaced.map { Load(requests: 1, bytes: try $0.row["size"]) } ?? Load()
        let refusal =
            excess(of: new, over: laneLimit, lane.load - freed, "the lane")
            ?? excess(of: new, over: limit, lane.queueLoad + stagedLoad - freed, "the queue")
        guard let refusal else { return true }
        switch new.options.whenFull {
        case .reject, .block: throw refusal
        case .dropNewest: return false
        case .dropOldest: try dropOldest(for: new, in: lane, except: replaced, freed)
        }
        return true
    }

    private var limit: Load { Load(requests: settings.limits.requests, bytes: settings.limits.bytes) }

    private var laneLimit: Load {
        Load(requests: max(1, Int(laneShare(of: Int64(limit.requests)))), bytes: laneShare(of: limit.bytes))
    }

    /// A share of 1 skips the conversion: `Int64.max` as a `Double` is rounded up to a number that no `Int64` can hold.
    private func laneShare(of number: Int64) -> Int64 {
        let share = settings.limits.laneShare
        return share < 1 ? Int64(Double(max(0, number)) * max(0, share)) : number
    }

    /// Refuses a request that can never fit. Otherwise others would be dropped for it, or the caller would wait
    /// forever.
    private func checkSize(of new: NewRequest) throws {
        let most = min(laneLimit.bytes, limit.bytes)
        guard new.size > most else { return }
        throw QueueError(
            .bodyTooLarge,
            "the request has \(new.size) bytes; the limit for a lane is \(most)"
        )
    }

    /// The load of uploads, which take room before a request uses them.
    var stagedLoad: Load { Load(bytes: environment.stagedBytes.count) }

    private func totalLoad() throws -> Load { try load(StoreStatements.load) + stagedLoad }

    private func load(_ sql: String, _ arguments: StatementArguments = StatementArguments()) throws -> Load {
        let row = try row(sql, arguments)!
        return try Load(requests: row["requests"], bytes: row["bytes"])
    }

    /// Returns an error when the new request exceeds the limit; `nil` when it fits.
    private func excess(of new: NewRequest, over limit: Load, _ load: Load, _ place: String) -> QueueError? {
        if load.requests >= limit.requests {
            return QueueError(
                .queueFull,
                "\(place) has \(load.requests) requests; its limit is \(limit.requests)"
            )
        }
        guard load.bytes + new.size > limit.bytes else { return nil }
        let room = max(0, limit.bytes - load.bytes)
        return QueueError(
            .queueFull,
            "the request has \(new.size) bytes; \(place) has \(room) of its \(limit.bytes) bytes free"
        )
    }

    /// Checks the free disk space. Outcomes must be writable even when the disk is nearly full.
    private func checkDisk(for new: NewRequest) throws {
        // A row takes more space in pages than it has bytes. A spooled body is already on the disk.
        guard let disk = try availableDiskSpace(), disk.room < 2 * new.rowSize else { return }
        throw QueueError(
            .queueFull,
            "\(disk.free) bytes of disk space are free; \(disk.reserve) are reserved",
            path: environment.directory
        )
    }

    struct AvailableDiskSpace {
        let free: Int64
        let reserve: Int64
        /// The room for rows in bytes, in addition to the reserve. Negative when others have used part of the reserve.
        let room: Int64
    }

    /// Returns `nil` when the file system does not report its free space.
    func availableDiskSpace() throws -> AvailableDiskSpace? {
        guard let space = FileSystem.space(at: environment.directory) else { return nil }
        let reserve = settings.limits.diskReserve(of: space)
        let rest = space.free - reserve
        let isPlenty = rest > 3 * CommitBatcher.longestLog
        let room = isPlenty ? rest - CommitBatcher.longestLog : try spaceForRows(rest, reserve)
        return AvailableDiskSpace(free: space.free, reserve: reserve, room: room)
    }

    /// Returns the room for rows when space is short. The database file never shrinks, so its free pages are available.
    /// It will grow only by the pages that are in the log alone. The part of the reserve that the log has taken was
    /// reserved for the log.
    private func spaceForRows(_ rest: Int64, _ reserve: Int64) throws -> Int64 {
        let file = "\(environment.directory)/queue.sqlite"
        let log = min(FileSystem.size(of: "\(file)-wal"), CommitBatcher.longestLog, reserve)
        let pages = try row(StoreStatements.pages)!
        let growth = max(0, try pages["size"] - FileSystem.size(of: file))
        let outside = rest + log - growth
        return outside < 0 ? outside : outside + (try pages["free"])
    }
}

extension NewRequest {
    /// The number of bytes that go into the database.
    var rowSize: Int64 {
        if case .spooled(let body) = body { size - body.size } else { size }
    }
}

extension QueueLimits {
    /// Returns the number of bytes to keep free on a file system. Without space for the log no outcome can be written.
    func diskReserve(of space: FileSystem.Space) -> Int64 {
        space.reserve(diskReserve, minimum: CommitBatcher.longestLog)
    }
}

// MARK: - Dropping the oldest

extension StoreTransaction {
    private mutating func dropOldest(
        for new: NewRequest,
        in lane: StoredLane,
        except replaced: StoredRequest?,
        _ freed: Load
    ) throws {
        let kept = replaced?.sequence ?? 0
        while let refusal = excess(
            of: new,
            over: laneLimit,
            try load(StoreStatements.laneLoad, [lane.id]) - freed,
            "the lane"
        ) {
            try drop(try row(StoreStatements.oldestOfLane, ["lane": lane.id, "kept": kept]), or: refusal)
        }
        while let refusal = excess(of: new, over: limit, try totalLoad() - freed, "the queue") {
            try drop(try row(StoreStatements.oldest, ["kept": kept]), or: refusal)
        }
    }

    private mutating func drop(_ row: StoredRow?, or refusal: QueueError) throws {
        guard let row else { throw refusal }
        let request = try StoredRequest(row: row)
        try move(request, by: .givenUp(.dropped, reason: Self.dropReason))
        // In a FIFO lane the dropped request may have blocked others.
        changedLanes.insert(request.lane)
    }
}
