internal import OfflineQueue

/// A store that forwards all calls to another store, except those that a test overrides.
protocol WrappedStore: QueueStore {
    var inner: any QueueStore { get }
}

extension WrappedStore {
    var changes: LaneChanges { inner.changes }
    var completions: CompletionChanges { inner.completions }
    var archive: any QueueArchive { inner.archive }
    var spool: BodySpool { inner.spool }
    var openingNotes: [String] { inner.openingNotes }
    var commitDurations: DurationHistogram { inner.commitDurations }

    func events() async throws -> QueueEvents { try await inner.events() }

    func use(_ settings: StoreSettings) async { await inner.use(settings) }

    func enqueue(_ requests: [NewRequest]) async throws -> [EnqueuedRequest] {
        try await inner.enqueue(requests)
    }

    func recover(releasing reasons: Set<HoldReason>) async throws {
        try await inner.recover(releasing: reasons)
    }

    func busyLanes(in selection: LaneSelection, after last: Int64, limit: Int) async throws -> [LaneRecord] {
        try await inner.busyLanes(in: selection, after: last, limit: limit)
    }

    func lanes(_ ids: [Int64]) async throws -> [LaneRecord] { try await inner.lanes(ids) }

    func reopen(
        _ selection: LaneSelection,
        releasing reasons: Set<HoldReason>
    ) async throws -> [QueueStatistics.ClosedLane] {
        try await inner.reopen(selection, releasing: reasons)
    }

    func claim(_ claims: [LaneClaim]) async throws -> [ClaimedBatch] { try await inner.claim(claims) }

    func conclude(_ conclusions: [Conclusion], claiming claims: [LaneClaim]) async throws -> Concluded {
        try await inner.conclude(conclusions, claiming: claims)
    }

    func edit(_ edit: QueueEdit, _ ids: [String]) async throws -> [EditResult] {
        try await inner.edit(edit, ids)
    }

    func edit(
        _ edit: QueueEdit,
        matching filter: RequestFilter,
        isDryRun: Bool
    ) async throws -> FilteredEdit {
        try await inner.edit(edit, matching: filter, isDryRun: isDryRun)
    }

    func setCredential(_ name: String, of ids: [String]) async throws -> [EditResult] {
        try await inner.setCredential(name, of: ids)
    }

    func releaseRequests(heldForCredential name: String, triedBefore time: ContinuousClock.Instant?)
        async throws
    {
        try await inner.releaseRequests(heldForCredential: name, triedBefore: time)
    }

    func release(_ release: HeldRelease) async throws -> ReleasedRequests {
        try await inner.release(release)
    }

    func reseal(after cursor: ResealCursor) async throws -> ResealCursor? {
        try await inner.reseal(after: cursor)
    }

    func expire() async throws -> Duration? { try await inner.expire() }

    func setPaused(_ isPaused: Bool, lanes: LaneSelection?) async throws -> Int {
        try await inner.setPaused(isPaused, lanes: lanes)
    }

    func pauses(in selection: LaneSelection) async throws -> LanePauses {
        try await inner.pauses(in: selection)
    }

    func ids(beginningWith prefix: String, limit: Int) async throws -> [String] {
        try await inner.ids(beginningWith: prefix, limit: limit)
    }

    func page(_ query: RequestQuery) async throws -> RequestPage { try await inner.page(query) }

    func details(of id: String) async throws -> RequestDetails? { try await inner.details(of: id) }

    func storedStates(of ids: [String]) async throws -> [String: StoredState] {
        try await inner.storedStates(of: ids)
    }

    func completion(of tag: String, after position: Int64) async throws -> StoredCompletion? {
        try await inner.completion(of: tag, after: position)
    }

    func removeCompletion(at position: Int64) async throws { try await inner.removeCompletion(at: position) }

    func counts() async throws -> QueueCounts { try await inner.counts() }

    func isDiskFull(forBody bytes: Int) async throws -> Bool { try await inner.isDiskFull(forBody: bytes) }

    func statistics() async throws -> QueueStatistics { try await inner.statistics() }

    func check() async throws { try await inner.check() }

    func close() async { await inner.close() }
}
