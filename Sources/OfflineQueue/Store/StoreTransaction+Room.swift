internal import GRDB

/// The limits, judged by the numbers of the database itself.
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

    /// Whether there is room now. `false`: the newcomer is to be given up.
    ///
    /// - Throws: ``QueueError`` with `queueFull`. With ``FullQueuePolicy/dropOldest`` requests may have been given up
    ///   before it turns out that none is left to be.
    mutating func makeRoom(
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

    /// All of it may be more than a `Double` tells from what no integer can hold.
    private func laneShare(of number: Int64) -> Int64 {
        let share = settings.limits.laneShare
        return share < 1 ? Int64(Double(max(0, number)) * max(0, share)) : number
    }

    /// What never fits is not worth dropping others for, nor waiting.
    private func checkSize(of new: NewRequest) throws {
        let most = min(laneLimit.bytes, limit.bytes)
        guard new.size > most else { return }
        throw QueueError(
            .bodyTooLarge,
            "the request has \(new.size) bytes, and the queue's limits allow \(most) in a lane"
        )
    }

    /// Uploads take room before a request uses them.
    private var stagedLoad: Load { Load(bytes: environment.stagedBytes.count) }

    private func totalLoad() throws -> Load { try load(StoreStatements.load) + stagedLoad }

    private func load(_ sql: String, _ arguments: StatementArguments = StatementArguments()) throws -> Load {
        let row = try row(sql, arguments)!
        return try Load(requests: row["requests"], bytes: row["bytes"])
    }

    /// What is too much with the newcomer; `nil` when all fits.
    private func excess(of new: NewRequest, over limit: Load, _ load: Load, _ place: String) -> QueueError? {
        if load.requests >= limit.requests {
            return QueueError(
                .queueFull,
                "\(place) has \(load.requests) requests, and takes \(limit.requests)"
            )
        }
        guard load.bytes + new.size > limit.bytes else { return nil }
        let room = max(0, limit.bytes - load.bytes)
        return QueueError(
            .queueFull,
            "the request has \(new.size) bytes, and \(place) has room for \(room) of its \(limit.bytes)"
        )
    }

    /// Outcomes have to be written when the disk is nearly full, too.
    private func checkDisk(for new: NewRequest) throws {
        // A row takes more pages than it has bytes. A spooled body is on the disk already.
        guard let disk = try diskRoom(), disk.room < 2 * new.rowSize else { return }
        throw QueueError(
            .queueFull,
            "the file system has \(disk.free) bytes free, and \(disk.reserve) are kept for what was accepted",
            path: environment.directory
        )
    }

    struct DiskRoom {
        let free: Int64
        let reserve: Int64
        /// For rows, beside the reserve. Negative when others have taken of that.
        let room: Int64
    }

    /// `nil` when it cannot be told.
    func diskRoom() throws -> DiskRoom? {
        guard let space = FileSystem.space(at: environment.directory) else { return nil }
        let reserve = space.reserve(settings.limits.diskReserve)
        let rest = space.free - reserve
        let isPlenty = rest > 3 * CommitBatcher.longestLog
        let room = isPlenty ? rest - CommitBatcher.longestLog : try roomForRows(rest, reserve)
        return DiskRoom(free: space.free, reserve: reserve, room: room)
    }

    /// The database's file never becomes shorter: it has pages of its own that are free. It is still to grow by what
    /// is in the log alone. And what the log has taken of the reserve was kept for it.
    private func roomForRows(_ rest: Int64, _ reserve: Int64) throws -> Int64 {
        let file = "\(environment.directory)/queue.sqlite"
        let log = min(FileSystem.size(of: "\(file)-wal"), CommitBatcher.longestLog, reserve)
        let pages = try row(StoreStatements.pages)!
        let growth = max(0, try pages["size"] - FileSystem.size(of: file))
        let outside = rest + log - growth
        return outside < 0 ? outside : outside + (try pages["free"])
    }
}

extension NewRequest {
    /// The bytes that go into the database.
    var rowSize: Int64 {
        if case .spooled(let body) = body { size - body.size } else { size }
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
        // In a lane in order it may have kept others back.
        changedLanes.insert(request.lane)
    }
}
