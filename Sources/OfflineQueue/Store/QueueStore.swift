/// The storage of requests. Every method that changes something returns after its change is durable.
///
/// Methods take batches, identify lanes by number, and fence outcomes with lease tokens. So a store that several
/// machines share can give the same guarantees. Only the store has a clock: times in its results are durations from its
/// answer on, and times that it receives are durations from the call on.
///
/// T1 to T7 are the transitions of a request: see `RequestLifecycle.Event`.
package protocol QueueStore: Sendable {
    /// The lanes that have new work, whichever caller created it.
    var changes: LaneChanges { get }

    /// The spool for bodies that are too large for a row. A store that machines share needs a shared directory.
    var spool: BodySpool { get }

    /// The interface for export, import and inspection.
    var archive: any QueueArchive { get }

    /// The duration of a lease without renewal; `nil` when leases last as long as the store is open.
    var leaseDuration: Duration? { get }

    /// T1. Stores new requests, all of them or none. Requests whose id is known change nothing.
    ///
    /// - Throws: ``QueueError``: `queueFull`, `unknownDependency`, `cyclicDependency`, `storeFailed`, `stopped`.
    func enqueue(_ requests: [NewRequest]) async throws -> [EnqueuedRequest]

    /// T4. Recovers requests of dead owners, releases requests that are held for one of the reasons, and returns all
    /// lanes with requests to send.
    func recover(releasing reasons: Set<HoldReason>) async throws -> [LaneRecord]

    /// Releases requests that are held for one of the reasons, opens the lanes that servers closed, and returns all
    /// lanes with requests to send.
    func reopen(releasing reasons: Set<HoldReason>) async throws -> [LaneRecord]

    /// T2. Claims requests that are due, in the lane's order, at most `limit` per lane. A store that machines share
    /// claims the lane itself first.
    func claim(_ claims: [LaneClaim]) async throws -> [ClaimedBatch]

    /// Renews leases, and returns the tokens of those that were lost.
    func renew(_ tokens: Set<String>) async throws -> Set<String>

    /// T3, then T2 in the same transaction. Writes outcomes, and claims requests that are due now.
    func conclude(_ conclusions: [Conclusion], claiming claims: [LaneClaim]) async throws -> Concluded

    /// T5, T7 and other edits by users. Returns one result per id. Ids must be complete, not prefixes.
    func edit(_ edit: QueueEdit, _ ids: [String]) async throws -> [EditResult]

    /// Edits all requests that match, in one transaction. A filter without states matches every state.
    ///
    /// - Parameter isDryRun: Whether the requests are only counted.
    func edit(_ edit: QueueEdit, matching filter: RequestFilter, isDryRun: Bool) async throws -> FilteredEdit

    /// T6. Gives up expired requests and removes old history. Returns the time until the next request expires, as far
    /// as is known now; `nil` when none will.
    func expire() async throws -> Duration?

    /// Pauses or resumes lanes; requests of a paused lane are not claimed. `nil` selects the whole queue. Resuming the
    /// queue also resumes every lane.
    ///
    /// - Returns: The number of matching lanes; for the whole queue, the number of lanes with requests.
    func setPaused(_ isPaused: Bool, lanes: LaneSelection?) async throws -> Int

    /// Returns up to `limit` ids that begin with a prefix, an exact match first.
    func ids(beginningWith prefix: String, limit: Int) async throws -> [String]

    func page(_ query: RequestQuery) async throws -> RequestPage

    func details(of id: String) async throws -> RequestDetails?

    /// Returns the states of requests, read at one moment. Unknown ids are left out.
    func storedStates(of ids: [String]) async throws -> [String: StoredState]

    func counts() async throws -> QueueCounts

    func statistics() async throws -> QueueStatistics

    /// What the owner should know about the opening of the store, one sentence each.
    var openingNotes: [String] { get }

    /// Checks that the store's files are still in place. If they are not, this and all later calls throw the same
    /// error.
    ///
    /// - Throws: ``QueueError``: `storeReplaced`.
    func check() async throws

    /// Finishes the operations in progress and closes the store. Later calls throw.
    func close() async
}

extension QueueStore {
    /// T3. Writes outcomes. Returns `false` for each outcome whose lease is no longer current; it changes nothing.
    package func conclude(_ conclusions: [Conclusion]) async throws -> [Bool] {
        try await conclude(conclusions, claiming: []).isCurrent
    }
}
