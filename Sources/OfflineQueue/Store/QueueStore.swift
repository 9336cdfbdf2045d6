/// Where requests are kept. Every method that changes something returns after its change is durable.
///
/// Methods take batches, name lanes by number and fence outcomes with lease tokens, so that a store that several
/// machines share can keep the same promises. The store has the only clock: what it says of times to come is a
/// duration from its answer on, and what it is told is a duration from the call on.
package protocol QueueStore: Sendable {
    /// The lanes that have something new to do, whoever gave it to them.
    var changes: LaneChanges { get }

    /// Where bodies are that are too large for a row. A store that machines share needs a directory that they share.
    var spool: BodySpool { get }

    /// By what it is exported, imported and looked through.
    var archive: any QueueArchive { get }

    /// How long a lease lasts that is not renewed; `nil` when leases last as long as the store is open.
    var leaseDuration: Duration? { get }

    /// T1. Stores new requests, all of them or none. Those whose id is known change nothing.
    ///
    /// - Throws: ``QueueError``: `queueFull`, `unknownDependency`, `cyclicDependency`, `storeFailed`, `stopped`.
    func enqueue(_ requests: [NewRequest]) async throws -> [EnqueuedRequest]

    /// T4. Gives requests of dead owners back, releases what is held for one of the reasons, and returns all
    /// lanes with something to send.
    func recover(releasing reasons: Set<HoldReason>) async throws -> [LaneRecord]

    /// Releases what is held for one of the reasons, opens the lanes that servers closed, and returns all
    /// lanes with something to send.
    func reopen(releasing reasons: Set<HoldReason>) async throws -> [LaneRecord]

    /// T2. Takes requests that are due, in the lane's order, at most `limit` of each lane. A store that machines
    /// share takes the lane itself first.
    func claim(_ claims: [LaneClaim]) async throws -> [ClaimedBatch]

    /// Prolongs leases, and returns the tokens of those that were lost.
    func renew(_ tokens: Set<String>) async throws -> Set<String>

    /// T3, then T2 in the same transaction. Writes outcomes, and takes requests that are due now.
    func conclude(_ conclusions: [Conclusion], claiming claims: [LaneClaim]) async throws -> Concluded

    /// T5, T7 and what else people ask for. One result for each id; ids are whole.
    func edit(_ edit: QueueEdit, _ ids: [String]) async throws -> [EditResult]

    /// The same for all requests that match, in one transaction. A filter without states matches all.
    ///
    /// - Parameter isDryRun: Whether the requests are only counted.
    func edit(_ edit: QueueEdit, matching filter: RequestFilter, isDryRun: Bool) async throws -> FilteredEdit

    /// T6. Gives up what has lived too long and forgets old history. Returns when the next is to be given up, as
    /// far as is known now; `nil` when nothing is.
    func expire() async throws -> Duration?

    /// Pauses lanes or lets them go on: nothing is claimed of them meanwhile. `nil` is the whole queue; when that
    /// goes on, every lane does.
    ///
    /// - Returns: How many lanes match; of the whole queue, how many have requests.
    func setPaused(_ isPaused: Bool, lanes: LaneSelection?) async throws -> Int

    /// Up to `limit` ids that begin with the text, one that is equal to it first.
    func ids(beginningWith prefix: String, limit: Int) async throws -> [String]

    func page(_ query: RequestQuery) async throws -> RequestPage

    func details(of id: String) async throws -> RequestDetails?

    /// Where requests stand, in one look; nothing for an id that is not known.
    func standings(of ids: [String]) async throws -> [String: RequestStanding]

    func counts() async throws -> QueueCounts

    func statistics() async throws -> QueueStatistics

    /// What opening the store found that its owner has to know, one sentence each.
    var openingNotes: [String] { get }

    /// Looks whether the store is still there. Once it is not, later calls throw the same error.
    ///
    /// - Throws: ``QueueError``: `storeReplaced`.
    func check() async throws

    /// Finishes what was begun and gives the store up. Later calls throw.
    func close() async
}

extension QueueStore {
    /// T3. Writes outcomes. `false` for each whose lease is not the holder's any more; nothing changed there.
    package func conclude(_ conclusions: [Conclusion]) async throws -> [Bool] {
        try await conclude(conclusions, claiming: []).isCurrent
    }
}

/// What ``QueueStore/conclude(_:claiming:)`` did.
package struct Concluded: Sendable {
    /// For each conclusion; `false` when the lease is not the holder's any more. Nothing changed then.
    package let isCurrent: [Bool]
    /// For each claim.
    package let claimed: [ClaimedBatch]
}

/// Where a request stands, as those need to know who wait for it.
package struct RequestStanding: Hashable, Sendable {
    package let state: QueuedRequest.State
    package let holdReason: HoldReason?
    /// Of the last attempt.
    package let status: Int?
    package let lastError: String?
}

/// What somebody asks of single requests.
package enum QueueEdit: Hashable, Sendable {
    case cancel
    case hold
    /// For whatever reason it is held.
    case release
    /// `newKey`: with another idempotency key than before, so that the server does not know it again.
    case retry(newKey: Bool)
}

/// The outcome of an edit by filter.
package struct FilteredEdit: Hashable, Sendable {
    package var result = FilteredEditResult()
    /// Requests that are being sent and were cancelled.
    package var cancelledInFlight: [Int64] = []
}

/// Lanes by what people know of them.
package struct LaneSelection: Hashable, Sendable {
    /// The host of its URLs; `nil` for any.
    package let host: String?
    /// The label, empty for lanes without one; `nil` for any.
    package let label: String?

    package init(host: String? = nil, label: String? = nil) {
        self.host = host
        self.label = label
    }
}

package struct EnqueuedRequest: Hashable, Sendable {
    package let id: String
    package let lane: LaneRecord
    package let outcome: Receipt.Outcome
    /// Whether earlier requests of the lane are still on their way.
    package let isBehindOthers: Bool
    package let idempotencyKey: String?
    /// Where it is on its way, be it new or known.
    package let state: QueuedRequest.State
    /// When it may be tried, from now on.
    package let due: Duration?
    package let status: Int?
    package let lastError: String?
    package let durability: Durability
}

package struct LaneRecord: Hashable, Sendable {
    package let id: Int64
    package let key: LaneKey
    /// The server wants nothing before then.
    package let notBefore: Duration?
    /// When its next request may be due; `nil` when nothing is pending, when the head of a FIFO lane is not, and
    /// while it is paused. Never further off than the longest delay, so that no clock is trusted for longer.
    package let due: Duration?
    package let isPaused: Bool
    /// Whether it has no requests, not even held ones.
    package var isEmpty = false
}

package struct LaneClaim: Hashable, Sendable {
    package let lane: Int64
    package let limit: Int
    /// Makes everything pending due and releases what is held for one of these reasons; `nil` does not.
    package let expediting: Set<HoldReason>?

    package init(lane: Int64, limit: Int, expediting: Set<HoldReason>? = nil) {
        self.lane = lane
        self.limit = limit
        self.expediting = expediting
    }
}

package struct ClaimedBatch: Sendable {
    package let lane: Int64
    package let requests: [ClaimedRequest]
    /// As in ``LaneRecord/due``, of what was left.
    package let due: Duration?
    /// Another machine works the lane; nothing of it is to be had.
    package let isElsewhere: Bool
}

package struct ClaimedRequest: Sendable {
    package let sequence: Int64
    package let id: String
    package let lease: Lease
    package let method: String
    package let url: String
    package let headers: [QueueRequest.Header]
    package let body: NewRequest.Body
    package let key: KeyHeader?
    package let isAtMostOnce: Bool
    package let expectation: Expectation
    /// The status of the attempt before, if that had one.
    package let lastStatus: Int?
    /// How long ago the first 409 in a row came; `nil` when the last answer was none.
    package let conflictAge: Duration?
    /// This one included.
    package let attempts: Int
    package let deferrals: Int
    /// As they were asked for.
    package let timeouts: AttemptTimeouts
    /// How many of its attempts a timeout of ours has cut while the server may still have executed them.
    package let overruns: Int
}

package struct Conclusion: Sendable {
    package let sequence: Int64
    package let token: String
    package let verdict: Verdict
    /// When to try again, for a retry: from now on.
    package let delay: Duration
    package let status: Int?
    package let detail: String?
    /// Closes the lane for so long, in the same transaction.
    package let laneClosure: Duration?
    /// The attempt that was made, `nil` when none was.
    package let attempt: AttemptRecord?
    /// Kept when the request is over.
    package let response: RecordedResponse?
    /// The timeout that cut the attempt while the server may still execute it: the next one waits for as long.
    package let overrun: Duration?

    package init(
        sequence: Int64,
        token: String,
        verdict: Verdict,
        delay: Duration = .zero,
        status: Int? = nil,
        detail: String? = nil,
        laneClosure: Duration? = nil,
        attempt: AttemptRecord? = nil,
        response: RecordedResponse? = nil,
        overrun: Duration? = nil
    ) {
        self.sequence = sequence
        self.token = token
        self.verdict = verdict
        self.delay = delay
        self.status = status
        self.detail = detail
        self.laneClosure = laneClosure
        self.attempt = attempt
        self.response = response
        self.overrun = overrun
    }
}

/// An attempt that is over.
package struct AttemptRecord: Hashable, Sendable {
    package let duration: Duration
    /// libcurl's code, 0 when an answer came.
    package let curlCode: Int32

    package init(duration: Duration, curlCode: Int32) {
        self.duration = duration
        self.curlCode = curlCode
    }
}
