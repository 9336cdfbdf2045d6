internal import NetwatchEventLoop

/// The storage of a queue's requests. Every method that changes something returns after the change is durable.
///
/// Methods take batches and identify lanes by number. An outcome is stored only under a current lease token. A store
/// that several machines share can therefore give the same guarantees.
///
/// Only the store reads the clock. Times in its results are durations from the moment of the result, and times in
/// arguments are durations from the moment of the call.
///
/// T1 to T7 are the numbers of a request's transitions in `RequestLifecycle.Event`.
package protocol QueueStore: Sendable {
    /// Reports lanes that have new work, whether this process or another one created it.
    var changes: LaneChanges { get }

    /// Reports the tags of requests that have ended.
    var completions: CompletionChanges { get }

    /// The directory of files for bodies that are too large for a row.
    var spool: BodySpool { get }

    /// The operations for export, import and inspection.
    var archive: any QueueArchive { get }

    /// Returns the changes that are committed after this returns, in the order of their commits.
    ///
    /// - Throws: ``QueueError`` if the store is closed or has failed.
    func events() async throws -> QueueEvents

    /// Stores new requests (T1): all of them, or none if this throws. A request whose id is already in the store is not
    /// stored again; its result describes the stored one.
    ///
    /// - Throws: ``QueueError``: `queueFull`, `unknownDependency`, `cyclicDependency`, `storeFailed`, `stopped`.
    func enqueue(_ requests: [NewRequest]) async throws -> [EnqueuedRequest]

    /// Recovers requests that were in flight when their owner ended (T4), and releases requests that are held for one
    /// of the reasons. Called when the queue starts.
    func recover(releasing reasons: Set<HoldReason>) async throws

    /// Returns selected lanes with unfinished requests, in the order of their ids.
    ///
    /// - Parameters:
    ///   - last: The lane after which to begin; 0 for the first one.
    ///   - limit: The maximum number of lanes. If there are fewer, there are no more.
    func busyLanes(in selection: LaneSelection, after last: Int64, limit: Int) async throws -> [LaneRecord]

    /// Returns the lanes with these ids that the store has. They may have no requests.
    func lanes(_ ids: [Int64]) async throws -> [LaneRecord]

    /// Releases the requests of the selected lanes that are held for one of the reasons, and opens those of the lanes
    /// that servers closed with `Retry-After`. Called by a flush.
    ///
    /// - Returns: The lanes that were opened and have requests, at most ``QueueStatistics/maximumPausedLanes``, with the
    ///   closures that servers had asked for.
    /// - Throws: ``QueueError``: `unknownLane` if there is no such lane and the selection is not ``LaneSelection/all``.
    func reopen(_ selection: LaneSelection, releasing reasons: Set<HoldReason>) async throws
        -> [QueueStatistics.ClosedLane]

    /// Claims due requests (T2) in the order of their lane, up to ``LaneClaim/limit`` for each lane. A paused lane only
    /// releases requests (``LaneClaim/releasing``).
    func claim(_ claims: [LaneClaim]) async throws -> [ClaimedBatch]

    /// Stores the outcomes of attempts (T3), and then claims due requests (T2) in the same transaction.
    func conclude(_ conclusions: [Conclusion], claiming claims: [LaneClaim]) async throws -> Concluded

    /// Cancels (T5), retries (T7), holds or releases requests. Returns one result per id. A prefix of an id is not
    /// accepted.
    func edit(_ edit: QueueEdit, _ ids: [String]) async throws -> [EditResult]

    /// Edits all requests that match a filter, in one transaction. A filter without states matches every state.
    ///
    /// - Parameter isDryRun: Whether to only count the matching requests, without editing them.
    func edit(_ edit: QueueEdit, matching filter: RequestFilter, isDryRun: Bool) async throws -> FilteredEdit

    /// Changes the credential of waiting or held requests. Releases those that are held for `auth`, and makes pending
    /// ones due now.
    func setCredential(_ name: String, of ids: [String]) async throws -> [EditResult]

    /// Releases the requests that are held for `auth` and have this credential. Their counters start again, because
    /// none of their attempts had the credential that they have now. Several transactions may release many requests.
    ///
    /// - Parameter time: The time before which the last attempt must have ended; `nil` for any.
    func releaseRequests(heldForCredential name: String, triedBefore time: ContinuousClock.Instant?)
        async throws

    /// Releases requests that attempts of this store have held for `auth`, although their credential has not changed.
    /// Their counters continue. Several transactions may release many requests.
    func release(_ release: HeldRelease) async throws -> ReleasedRequests

    /// Gives up expired requests (T6), and removes finished requests whose retention period is over.
    ///
    /// - Returns: The time until the next of the stored requests expires; `nil` if none will.
    func expire() async throws -> Duration?

    /// Encrypts the next stored requests that are not encrypted with the current key.
    ///
    /// - Returns: Where the next call continues; `nil` at the end, or if the store has no keys.
    func reseal(after cursor: ResealCursor) async throws -> ResealCursor?

    /// Pauses or resumes lanes, or the whole queue if `lanes` is `nil`. Requests of a paused lane are not claimed.
    /// Resuming the queue also resumes every lane.
    ///
    /// - Returns: The number of lanes that match; for the whole queue, the number of lanes with requests.
    func setPaused(_ isPaused: Bool, lanes: LaneSelection?) async throws -> Int

    /// Returns whether the whole queue is paused, and which of the selected lanes are paused individually.
    func pauses(in selection: LaneSelection) async throws -> LanePauses

    /// Returns up to `limit` ids that begin with `prefix`. An id that equals the prefix comes first.
    func ids(beginningWith prefix: String, limit: Int) async throws -> [String]

    /// Returns one page of a listing.
    func page(_ query: RequestQuery) async throws -> RequestPage

    /// Returns a request with its attempts and response; `nil` if the id is unknown.
    func details(of id: String) async throws -> RequestDetails?

    /// Returns the states of requests by id, all read at the same moment. Unknown ids are omitted.
    func storedStates(of ids: [String]) async throws -> [String: StoredState]

    /// Returns the first completion of a tag after a position that no handler has handled yet; `nil` if there is none.
    func completion(of tag: String, after position: Int64) async throws -> StoredCompletion?

    /// Removes a completion that was handled. The removal need not survive a power loss.
    func removeCompletion(at position: Int64) async throws

    /// Replaces the settings for later changes. The key file is not read again.
    func use(_ settings: StoreSettings) async

    /// Returns the number of requests in each state.
    func counts() async throws -> QueueCounts

    /// Returns whether too little of the file system is free for a new request whose body has this number of bytes and is
    /// stored in a row.
    func isDiskFull(forBody bytes: Int) async throws -> Bool

    /// Returns the figures of `netwatch queue stats`.
    func statistics() async throws -> QueueStatistics

    /// Notes about the opening of the store for the user's log, one sentence each. An example is the number of
    /// incomplete commits that were dropped.
    var openingNotes: [String] { get }

    /// The durations of the commits since the store was opened.
    var commitDurations: DurationHistogram { get }

    /// Checks that no error has ended the store, and that its files were not removed or replaced while they are open.
    /// Otherwise this call and all later ones throw the same error.
    ///
    /// - Throws: ``QueueError``: `storeReplaced`; `storeUnusable` after damage; `storeFailed` after a failed write.
    func check() async throws

    /// Finishes the operations in progress and closes the store. Later calls of any method throw.
    func close() async
}

extension QueueStore {
    /// Stores the outcomes of attempts (T3) without claiming further requests.
    ///
    /// - Returns: One value per outcome: `false` if its lease is no longer current. Such an outcome is ignored.
    package func conclude(_ conclusions: [Conclusion]) async throws -> [Bool] {
        try await conclude(conclusions, claiming: []).isCurrent
    }
}

/// Notifies of requests with a tag that have ended. Each tag has separate waiters, so that the end of a request only
/// wakes the handler of its tag.
package final class CompletionChanges: Sendable {
    private let tags = Lock<[String: ChangeWaiters]>([:])

    /// Returns the waiters of a tag. From now on, they are notified.
    func waiters(of tag: String) -> ChangeWaiters {
        tags.withLock { tags in
            if let waiters = tags[tag] { return waiters }
            let waiters = ChangeWaiters()
            tags[tag] = waiters
            return waiters
        }
    }

    /// Forgets the waiters of a tag, of which none may be waiting.
    func removeWaiters(of tag: String) {
        tags.withLock { $0[tag] = nil }
    }

    /// Wakes the waiters of these tags.
    func post(_ completed: Set<String>) {
        guard !completed.isEmpty else { return }
        let waiters = tags.withLock { tags in completed.compactMap { tags[$0] } }
        for tag in waiters { tag.changed() }
    }
}

/// The limits, maximum delays and retention periods of a store.
package struct StoreSettings: Hashable, Sendable {
    package var limits = QueueLimits()
    /// The maximum time until a request is due, unless its caller scheduled it for later. It limits the delay that a
    /// wrong clock can cause. Default 15 minutes.
    package var longestDelay: Duration = Backoff.defaultCap
    /// The maximum time for which a server can close a lane. Default 24 hours.
    package var longestClosure: Duration = RetryAfter.longest
    package var retention = Retention()
    /// The waiting time that outweighs one level of priority. A request that has been due for this time goes before
    /// younger requests of the next higher priority. Default 10 minutes.
    package var ageingStep: Duration = .seconds(600)
    /// The path of the file with the encryption keys; `nil` for none.
    package var encryptionKeyFile: String?

    /// How long, and how many, finished requests are kept.
    package struct Retention: Hashable, Sendable {
        /// How long delivered, cancelled and superseded requests are kept. Default 1 day.
        package var done: Duration = .seconds(86_400)
        /// The maximum number of delivered requests, of cancelled requests and of superseded requests of each
        /// submitter. Requests without a submitter count together. Default 10,000 of each.
        package var doneCount = 10_000
        /// How long dead requests are kept, with their bodies. Default 7 days.
        package var dead: Duration = .seconds(7 * 86_400)
        /// The maximum total size of finished requests in bytes, including recorded responses and the bodies of dead
        /// requests. Beyond it, the oldest requests of the user whose requests have most bytes are removed. Default
        /// 256 MiB.
        package var bytes: Int64 = 256 << 20

        package init() {}
    }

    package init() {}
}

/// Passes changes of lanes from the store to the queue. The buffer holds at most one record per lane, so that it does
/// not grow with the number of changes. A new record is merged with the lane's record that is still in the buffer.
package final class LaneChanges: Sendable {
    private struct State {
        var waiting: [Int64: LaneRecord] = [:]
    }

    private let state = Lock(State())
    private let signals: AsyncStream<Void>
    private let signal: AsyncStream<Void>.Continuation

    package init() {
        (signals, signal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Buffers records of changed lanes and wakes the reader.
    package func post(_ records: [LaneRecord]) {
        guard !records.isEmpty else { return }
        state.withLock { state in
            for record in records { state.waiting[record.id] = record.joined(with: state.waiting[record.id]) }
        }
        signal.yield()
    }

    /// Waits for a change, and returns the lanes that changed since the last call. Returns an empty array once
    /// ``finish()`` was called. Only one task may call this.
    package func next() async -> [LaneRecord] {
        for await _ in signals {
            let records = state.withLock { state in
                defer { state.waiting = [:] }
                return state.waiting.values.sorted { $0.id < $1.id }
            }
            if !records.isEmpty { return records }
        }
        return []
    }

    /// Ends the stream of changes. Called when the store is closed.
    package func finish() {
        signal.finish()
    }
}

extension LaneRecord {
    /// Returns the newer record, with three properties of the older one. The earlier due time is kept, because a record
    /// may cover only the rows that its transaction read. ``LaneRecord/wasEmpty`` is kept, because the lane may have
    /// been empty between the two changes, and ``LaneRecord/wasReleased``, because the release is still to be handled.
    fileprivate func joined(with older: LaneRecord?) -> LaneRecord {
        guard let older else { return self }
        return LaneRecord(
            id: id,
            key: key,
            notBefore: notBefore,
            due: isPaused ? nil : [due, older.due].compactMap { $0 }.min(),
            isPaused: isPaused,
            wasEmpty: wasEmpty || older.wasEmpty,
            wasReleased: wasReleased || older.wasReleased
        )
    }
}
