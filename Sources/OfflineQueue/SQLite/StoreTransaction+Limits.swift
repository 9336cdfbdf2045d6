internal import Foundation
internal import GRDB

/// Compares the limits with the counters in the database.
extension StoreTransaction {
    /// A limit, and whose it is.
    private struct Limit {
        /// What has the limit: `the queue`.
        let place: String
        /// Why a request was dropped: `the queue was full`.
        let dropReason: String
        let load: Load
        /// The queue's limits of which the limit is a share; `nil` if the limit is not a share.
        var whole: QueueLimits?
        var code = QueueError.Code.queueFull

        /// Returns the setting of which the limit is a share, for messages. Empty if the limit is not a share.
        func origin(_ setting: String) -> String {
            guard let whole, whole.laneShare < 1 else { return "" }
            // Three significant digits, so that a small share is not 0 %.
            let percentage = String(format: "%.3g", whole.laneShare * 100)
            return ", which is \(percentage) % of `\(whole.namePrefix)\(setting)`"
        }
    }

    /// A limit that a request would exceed.
    private struct Excess {
        let limit: Limit
        let error: QueueError
    }

    /// A number of requests, and their total size in bytes.
    struct Load {
        var requests = 0
        var bytes: Int64 = 0

        static func + (left: Load, right: Load) -> Load {
            Load(requests: left.requests + right.requests, bytes: left.bytes + right.bytes)
        }

        static func - (left: Load, right: Load) -> Load {
            Load(requests: left.requests - right.requests, bytes: left.bytes - right.bytes)
        }

        /// Returns the larger of both numbers, and the larger of both sizes.
        func atLeast(_ other: Load) -> Load {
            Load(requests: max(requests, other.requests), bytes: max(bytes, other.bytes))
        }

        /// Returns whether a limit has room for a request besides a load.
        func hasRoom(for size: Int64, besides load: Load) -> Bool {
            load.requests < requests && load.bytes + size <= bytes
        }
    }

    /// Makes sure that a new request fits into the limits.
    ///
    /// - Parameter replaced: The request that the new one replaces, whose space becomes free.
    /// - Returns: Whether the request fits; `false` if it must be dropped (``FullQueuePolicy/dropNewest``).
    ///
    /// - Throws: ``QueueError``: `bodyTooLarge`, `queueFull` or `quotaExceeded`. With ``FullQueuePolicy/dropOldest``,
    ///   other requests may already have been dropped when this throws. The transaction must then be rolled back.
    mutating func freeCapacity(
        for new: NewRequest,
        in lane: StoredLane,
        replacing replaced: StoredRequest?
    ) throws -> Bool {
        try checkSize(of: new)
        try checkDisk(for: new)
        let freed = try replaced.map { try $0.loadFreedByEnd(in: lane.key.origin) } ?? Freed()
        let exceeded =
            try userExcess(of: new, freed)
            ?? excess(of: new.size, over: laneLimit, lane.load - freed.lane)
            ?? excess(of: new.size, over: limit, lane.queueLoad + stagedLoad - freed.queue)
        guard let exceeded else { return true }
        switch new.options.whenFull {
        case .reject, .block: throw exceeded.error
        case .dropNewest: return false
        case .dropOldest: try dropOldest(for: new, in: lane, except: replaced, freed)
        }
        return true
    }

    /// The room that becomes free when a request ends.
    fileprivate struct Freed {
        var lane = Load()
        var queue = Load()
    }

    private var limit: Limit {
        Limit(
            place: "the queue",
            dropReason: "the queue was full",
            load: Load(requests: settings.limits.requests, bytes: settings.limits.bytes)
        )
    }

    private var laneLimit: Limit {
        let (requests, bytes) = (Int64(settings.limits.requests), settings.limits.bytes)
        return Limit(
            place: "the lane",
            dropReason: "the lane was full",
            load: Load(requests: max(1, Int(laneShare(of: requests))), bytes: laneShare(of: bytes)),
            whole: settings.limits
        )
    }

    /// Returns the quota of the user if the new request would exceed it; `nil` if it fits, or if the user has no quota.
    private func userExcess(of new: NewRequest, _ freed: Freed, keeping kept: Load = Load()) throws -> Excess?
    {
        guard let submitter = new.options.submitter, let quota = submitter.quota else { return nil }
        return try excess(of: new.size, over: quota, of: submitter.user, freed, keeping: kept)
    }

    /// Returns the quota of a user if a request of this size would exceed it; `nil` if it fits.
    private func excess(
        of size: Int64,
        over quota: UserQuota,
        of user: UInt32,
        _ freed: Freed = Freed(),
        keeping kept: Load = Load()
    ) throws -> Excess? {
        let limit = Limit(
            place: "the user \(user)",
            dropReason: "the quota of the user \(user) was reached",
            load: Load(requests: quota.requests, bytes: quota.bytes),
            code: .quotaExceeded
        )
        return excess(of: size, over: limit, try userLoad(user) - freed.queue, keeping: kept)
    }

    private func userLoad(_ user: UInt32) throws -> Load {
        let row = try row(StoreStatements.userLoad, [user])
        return try row.map { try Load(requests: $0["requests"], bytes: $0["bytes"]) } ?? Load()
    }

    /// Returns a lane's share of a limit. A share of 1 is not calculated with `Double`, which would round `Int64.max`
    /// up to a number that does not fit into `Int64`.
    private func laneShare(of number: Int64) -> Int64 {
        let share = settings.limits.laneShare
        return share < 1 ? Int64(Double(max(0, number)) * max(0, share)) : number
    }

    /// Throws if the request could not fit even into an empty lane. Otherwise other requests would be dropped without
    /// making enough room, or the caller would wait forever.
    private func checkSize(of new: NewRequest) throws {
        let quota = new.options.submitter?.quota?.bytes ?? .max
        let most = min(laneLimit.load.bytes, limit.load.bytes, quota)
        guard new.size > most else { return }
        let holder = most == quota ? "in the quota of the user" : "in a lane\(laneLimit.origin("bytes"))"
        throw QueueError(
            .bodyTooLarge,
            "the request has \(new.size) bytes; at most \(most) are accepted \(holder)"
        )
    }

    /// The size of uploads that no request uses yet. They count towards the queue's limit.
    var stagedLoad: Load { Load(bytes: environment.stagedBytes.count) }

    /// Throws if the retry of a dead request would exceed the quota of its submitter, or, if it has a webhook, the limits
    /// of the whole queue.
    ///
    /// The webhook of the first end has replaced the request, and each further end adds a webhook. Without this check,
    /// retries could fill the disk. Other dead requests are already stored, so only a quota limits their retries.
    ///
    /// - Parameter quota: The quota of the submitter; `nil` for none.
    /// - Throws: ``QueueError``: `quotaExceeded` or `queueFull`.
    func checkCapacity(forRetryOf row: StoredRow, within quota: UserQuota?) throws {
        let size: Int64 = try row["size"]
        if let quota, let user = try row["submitter"] as UInt32?,
            let excess = try excess(of: size, over: quota, of: user)
        {
            throw excess.error
        }
        guard try EnqueueOptions(row: row).onDone != nil else { return }
        let (limit, load) = (limit.load, try totalLoad())
        guard load.requests >= limit.requests || load.bytes + size > limit.bytes else { return }
        let (id, bytes) = (try row["id"] as String, max(0, limit.bytes - load.bytes))
        throw QueueError(
            .queueFull,
            "\(quoted(id)) has a webhook and cannot be retried now: the queue has \(load.requests) of "
                + "\(limit.requests) requests, and \(bytes) bytes are free"
        )
    }

    private func totalLoad() throws -> Load { try load(StoreStatements.load) + stagedLoad }

    private func load(_ sql: String, _ arguments: StatementArguments = StatementArguments()) throws -> Load {
        let row = try row(sql, arguments)!
        return try Load(requests: row["requests"], bytes: row["bytes"])
    }

    /// Returns the limit if a request of this size would exceed it; `nil` if it fits.
    ///
    /// - Parameter kept: A load that may be used although it exceeds the limit.
    private func excess(of size: Int64, over limit: Limit, _ load: Load, keeping kept: Load = Load())
        -> Excess?
    {
        let (most, place) = (limit.load, limit.place)
        guard !most.atLeast(kept).hasRoom(for: size, besides: load) else { return nil }
        let message: String
        if load.requests >= most.requests {
            message =
                "\(place) has \(load.requests) requests; its limit is \(most.requests)"
                + limit.origin("requests")
        } else {
            let room = max(0, most.bytes - load.bytes)
            message =
                "the request has \(size) bytes; \(place) has \(room) of its \(most.bytes) bytes free"
                + limit.origin("bytes")
        }
        return Excess(limit: limit, error: QueueError(limit.code, message))
    }

    /// Throws if the request would use the disk space that is reserved for storing outcomes.
    private func checkDisk(for new: NewRequest) throws {
        // A spooled body is already on the disk.
        guard let disk = try availableDiskSpace(),
            disk.room < AvailableDiskSpace.space(forRowOf: new.rowSize)
        else { return }
        let limits = settings.limits
        throw QueueError(
            .queueFull,
            "\(disk.free) bytes of disk space are free; \(disk.reserve) must stay free to store outcomes "
                + "(`\(limits.namePrefix)\(limits.diskReserveName)`, or less on a small file system)",
            path: environment.directory
        )
    }

    /// The space of the file system that contains the database, in bytes.
    struct AvailableDiskSpace {
        let free: Int64
        let reserve: Int64
        /// The space for new rows that leaves the reserve free. Negative if other programs have used part of the
        /// reserve.
        let room: Int64

        /// Whether there is no room for a request whose body has this number of bytes and is stored in a row.
        func isFull(forBody bytes: Int) -> Bool { room < Self.space(forRowOf: Int64(bytes)) }

        /// Returns the space that a row with this number of bytes takes in the database, which is more than the bytes.
        static func space(forRowOf bytes: Int64) -> Int64 { 2 * bytes }
    }

    /// Returns the disk space for new rows; `nil` if the file system does not report its free space.
    func availableDiskSpace() throws -> AvailableDiskSpace? {
        guard let space = FileSystem.space(at: environment.directory) else { return nil }
        let reserve = settings.limits.diskReserve(of: space)
        let rest = space.free - reserve
        let isPlenty = rest > 3 * CommitBatcher.longestLog
        let room = isPlenty ? rest - CommitBatcher.longestLog : try spaceForRows(rest, reserve)
        return AvailableDiskSpace(free: space.free, reserve: reserve, room: room)
    }

    /// Returns the space for new rows in bytes when the disk is nearly full, from SQLite's own numbers:
    ///
    /// - The free pages of the database can be used, because its file never shrinks.
    /// - The file will grow by the pages that are only in the log so far.
    /// - The log may use part of the reserve, so its current size is added.
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
    /// The number of the request's bytes that go into the database; a spooled body does not.
    var rowSize: Int64 {
        if case .spooled(let body) = body { size - body.size } else { size }
    }
}

extension QueueLimits {
    /// Returns the number of bytes to keep free on a file system. It is at least the maximum size of SQLite's log,
    /// because no outcome can be stored without the log.
    func diskReserve(of space: FileSystem.Space) -> Int64 {
        space.reserve(diskReserve, minimum: CommitBatcher.longestLog)
    }
}

extension StoredRequest {
    /// The room that becomes free when the request ends. Its webhook takes its place in the queue, and the bytes that
    /// the request has reserved for it. A webhook to another origin takes no place in the request's lane.
    fileprivate func loadFreedByEnd(in origin: Origin) throws -> StoreTransaction.Freed {
        let whole = StoreTransaction.Load(requests: 1, bytes: try row["size"])
        guard let webhook = options.onDone else {
            return StoreTransaction.Freed(lane: whole, queue: whole)
        }
        let rest = StoreTransaction.Load(requests: 0, bytes: whole.bytes - webhook.reservedBytes)
        let staysInLane = (try? Origin(url: webhook.url)) == origin
        return StoreTransaction.Freed(lane: staysInLane ? rest : whole, queue: rest)
    }
}

// MARK: - Dropping the oldest

extension StoreTransaction {
    /// Drops the oldest requests until a new one fits.
    ///
    /// If a limit was lowered, more may be stored than it permits. The new request then makes room only for itself: what
    /// is stored does not grow, and nothing else is lost.
    private mutating func dropOldest(
        for new: NewRequest,
        in lane: StoredLane,
        except replaced: StoredRequest?,
        _ freed: Freed
    ) throws {
        // A user with a quota may drop only its own requests. A lane has requests of only one user.
        let submitter = new.options.submitter
        let user = submitter?.quota == nil ? nil : submitter?.user
        let kept = replaced?.sequence ?? 0
        let ofUser = try user.map { try userLoad($0) } ?? Load()
        let (ofLane, ofQueue) = (lane.load, lane.queueLoad + stagedLoad)
        while let excess = try userExcess(of: new, freed, keeping: ofUser) {
            try drop(try oldest(of: user, except: kept), for: excess)
        }
        while let excess = excess(
            of: new.size,
            over: laneLimit,
            try load(StoreStatements.laneLoad, [lane.id]) - freed.lane,
            keeping: ofLane
        ) {
            try drop(try row(StoreStatements.oldestOfLane, ["lane": lane.id, "kept": kept]), for: excess)
        }
        while let excess = excess(of: new.size, over: limit, try totalLoad() - freed.queue, keeping: ofQueue)
        {
            try drop(try oldest(of: user, except: kept), for: excess)
        }
    }

    /// Returns the oldest request that may be dropped; `nil` if there is none.
    ///
    /// - Parameters:
    ///   - user: The user who must have submitted it; `nil` for any.
    ///   - kept: The number of a request that is not returned.
    private func oldest(of user: UInt32?, except kept: Int64) throws -> StoredRow? {
        guard let user else { return try row(StoreStatements.oldest, ["kept": kept]) }
        return try row(StoreStatements.oldestOfUser, ["user": user, "kept": kept])
    }

    private mutating func drop(_ row: StoredRow?, for excess: Excess) throws {
        guard let row else { throw excess.error }
        let request = try StoredRequest(row: row)
        try move(request, by: .givenUp(.dropped, reason: "dropped: \(excess.limit.dropReason)"))
        // In a FIFO lane, other requests may have waited behind the dropped one.
        changedLanes.insert(request.lane)
    }
}
