internal import Dispatch
internal import Foundation
internal import GRDB
internal import NetwatchEventLoop

extension SQLiteQueueStore {
    package func events() async throws -> QueueEvents { QueueEvents(try await batcher.subscribe()) }

    package func enqueue(_ requests: [NewRequest]) async throws -> [EnqueuedRequest] {
        let bytes = requests.reduce(0) { $0 + $1.size }
        let durability: Durability = requests.contains { $0.options.durability == .full } ? .full : .normal
        return try await write(
            rows: requests.count,
            bytes: bytes,
            durability: durability,
            isAtomic: requests.count > 1 || requests.contains { $0.options.whenFull == .dropOldest }
        ) { try $0.enqueue(requests) }
    }

    package func recover(releasing reasons: Set<HoldReason>) async throws {
        try await write(rows: 1) { transaction in
            try transaction.recover()
            try transaction.release(reasons, in: .all)
        }
    }

    package func busyLanes(in selection: LaneSelection, after last: Int64, limit: Int) async throws
        -> [LaneRecord]
    {
        try await read { try $0.busyLanes(in: selection, after: last, limit: limit) }
    }

    package func lanes(_ ids: [Int64]) async throws -> [LaneRecord] {
        try await read { transaction in
            try ids.compactMap { try transaction.lane($0)?.record(in: transaction) }
        }
    }

    package func reopen(
        _ selection: LaneSelection,
        releasing reasons: Set<HoldReason>
    ) async throws -> [QueueStatistics.ClosedLane] {
        try await write(rows: 1) { transaction in
            let opened = try transaction.open(selection)
            try transaction.release(reasons, in: selection)
            return opened
        }
    }

    package func claim(_ claims: [LaneClaim]) async throws -> [ClaimedBatch] {
        let limit = claims.reduce(0) { $0 + $1.limit }
        return try await write(rows: limit) { try $0.claim(claims) }
    }

    package func conclude(_ conclusions: [Conclusion], claiming claims: [LaneClaim]) async throws -> Concluded
    {
        let limit = claims.reduce(0) { $0 + $1.limit }
        return try await write(rows: conclusions.count + limit) { transaction in
            let isCurrent = try conclusions.map { try transaction.conclude($0) }
            return Concluded(isCurrent: isCurrent, claimed: try transaction.claim(claims))
        }
    }

    package func edit(_ edit: QueueEdit, _ ids: [String]) async throws -> [EditResult] {
        try await write(rows: ids.count, isAtomic: edit.mayBeRefused) { [environment] transaction in
            try environment.events.during(edit.eventCause) { try ids.map { try transaction.edit(edit, $0) } }
        }
    }

    package func edit(
        _ edit: QueueEdit,
        matching filter: RequestFilter,
        isDryRun: Bool
    ) async throws -> FilteredEdit {
        if isDryRun { return try await read { try $0.count(edit, matching: filter) } }
        return try await write(rows: CommitBatcher.maximumRows, isAtomic: edit.mayBeRefused) {
            [environment] transaction in
            try environment.events.during(edit.eventCause) { try transaction.edit(edit, matching: filter) }
        }
    }

    package func setCredential(_ name: String, of ids: [String]) async throws -> [EditResult] {
        try await write(rows: ids.count, isAtomic: true) { transaction in
            try ids.map { try transaction.setCredential(name, of: $0) }
        }
    }

    package func releaseRequests(heldForCredential name: String, triedBefore time: ContinuousClock.Instant?)
        async throws
    {
        // Proceeds in the order of the requests, so that it does not release a request again that is held again in the
        // meantime.
        var place: Int64? = 0
        while let last = place {
            place = try await write(rows: StoreTransaction.releasedAtOnce) {
                try $0.releaseRequests(heldForCredential: name, triedBefore: time, after: last)
            }
        }
    }

    package func release(_ release: HeldRelease) async throws -> ReleasedRequests {
        switch release {
        case .next(let scope, let last):
            return try await write(rows: 1) { try $0.releaseNext(of: scope, after: last) }
        case .lanes(let last):
            return try await write(rows: StoreTransaction.releasedAtOnce) {
                try $0.releaseNext(afterLane: last)
            }
        case .all(let scope):
            var released = ReleasedRequests.none
            var place: HeldPlace? = HeldPlace(lane: 0, sequence: 0)
            while let last = place {
                place = try await write(rows: StoreTransaction.releasedAtOnce) {
                    try $0.releaseRequests(of: scope, after: last)
                }
                if let place { released = .some(last: place) }
            }
            return released
        }
    }

    package func expire() async throws -> Duration? {
        try await write(rows: 1) { try $0.expire() }
    }

    package func setPaused(_ isPaused: Bool, lanes: LaneSelection?) async throws -> Int {
        try await write(rows: 1) { try $0.setPaused(isPaused, lanes: lanes) }
    }

    package func pauses(in selection: LaneSelection) async throws -> LanePauses {
        try await read { try $0.pauses(in: selection) }
    }

    package func ids(beginningWith prefix: String, limit: Int) async throws -> [String] {
        try await read { try $0.ids(beginningWith: prefix, limit: limit) }
    }

    package func page(_ query: RequestQuery) async throws -> RequestPage {
        try await read { try $0.page(query) }
    }

    package func details(of id: String) async throws -> RequestDetails? {
        try await read { try $0.details(of: id) }
    }

    package func storedStates(of ids: [String]) async throws -> [String: StoredState] {
        try await read { try $0.storedStates(of: ids) }
    }

    package func completion(of tag: String, after position: Int64) async throws -> StoredCompletion? {
        try await read { try $0.completion(of: tag, after: position) }
    }

    package func removeCompletion(at position: Int64) async throws {
        try await write(rows: 1, durability: .normal) { try $0.removeCompletion(at: position) }
    }

    package func use(_ settings: StoreSettings) async {
        environment.settings.replace(settings)
        // If it is not known now, the earlier reserve still applies.
        guard let reserve = await Self.reserve(of: settings, at: environment.directory) else { return }
        spool.use(reserve: reserve)
    }

    /// Returns the number of bytes that bodies must leave free on the file system of a directory; `nil` if the file
    /// system does not report its size.
    static func reserve(of settings: StoreSettings, at path: String) async -> Int64? {
        await DispatchQueue.global().run {
            FileSystem.space(at: path).map(settings.limits.diskReserve(of:))
        }
    }

    package func counts() async throws -> QueueCounts {
        try await read { try $0.counts() }
    }

    package func isDiskFull(forBody bytes: Int) async throws -> Bool {
        try await read { try $0.availableDiskSpace()?.isFull(forBody: bytes) ?? false }
    }

    package func statistics() async throws -> QueueStatistics {
        try await read { try $0.statistics() }
    }
}

extension QueueEdit {
    /// Whether the edit can fail after it has changed rows: a later request may exceed the quota of its user, there may
    /// be no room for its webhook, and the encryption key for a new idempotency key may be missing.
    fileprivate var mayBeRefused: Bool {
        if case .retry = self { true } else { false }
    }

    fileprivate var eventCause: EventRecorder.Cause? {
        if case .retry = self { .retry } else { nil }
    }
}
