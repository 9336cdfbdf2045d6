/// Where requests are kept. Every method that changes something returns after its change is durable.
///
/// Methods take batches and moments, name lanes by number and fence outcomes with lease tokens, so that a
/// store that several machines share can keep the same promises.
package protocol QueueStore: Sendable {
    /// Stores new requests, all of them or none. Those whose id is known change nothing.
    func enqueue(_ requests: [NewRequest], now: Timestamp) async throws -> [EnqueuedRequest]

    /// Gives requests of dead owners back (``RequestState/Event/ownerChanged(to:now:)``), releases what is
    /// held for a reason that a restart may have removed, and returns all lanes with something to send.
    func recover(releasing reasons: Set<HoldReason>, now: Timestamp) async throws -> [LaneRecord]

    /// Releases what is held for one of the reasons, opens the lanes that servers closed, and returns all
    /// lanes with something to send.
    func reopen(releasing reasons: Set<HoldReason>, now: Timestamp) async throws -> [LaneRecord]

    /// Takes requests that are due, in the lane's order, at most `limit` of each lane.
    func claim(_ claims: [LaneClaim], now: Timestamp) async throws -> [ClaimedBatch]

    /// Writes outcomes. `false` for each whose lease is not the holder's any more; nothing changed there.
    func conclude(_ conclusions: [Conclusion], now: Timestamp) async throws -> [Bool]

    /// Requests still on their way in their order, then finished ones, newest first.
    func list(limit: Int) async throws -> [QueuedRequest]

    func counts() async throws -> QueueCounts

    /// Finishes what was begun and gives the store up. Later calls throw.
    func close() async
}

package struct EnqueuedRequest: Hashable, Sendable {
    package let lane: LaneRecord
    package let isNew: Bool
    /// Whether earlier requests of the lane are still on their way.
    package let isBehindOthers: Bool
    package let idempotencyKey: String?
    /// Where a request that is not new is on its way.
    package let state: QueuedRequest.State
    package let status: Int?
    package let lastError: String?
}

package struct LaneRecord: Hashable, Sendable {
    package let id: Int64
    package let key: LaneKey
    /// The server wants nothing before then.
    package let notBefore: Timestamp?
    /// When its next request is due, `nil` when nothing is pending (or the head of a FIFO lane is not).
    package let due: Timestamp?
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
    package let due: Timestamp?
}

package struct ClaimedRequest: Sendable {
    package let sequence: Int64
    package let id: String
    package let lease: Lease
    package let request: QueueRequest
    package let idempotencyKey: String?
    /// This one included.
    package let attempts: Int
    package let deferrals: Int
}

package struct Conclusion: Sendable {
    package let sequence: Int64
    package let token: String
    package let verdict: Verdict
    /// When to try again, for a retry.
    package let due: Timestamp
    package let status: Int?
    package let detail: String?
    /// Closes the lane until then, in the same transaction.
    package let laneNotBefore: Timestamp?

    package init(
        sequence: Int64,
        token: String,
        verdict: Verdict,
        due: Timestamp,
        status: Int? = nil,
        detail: String? = nil,
        laneNotBefore: Timestamp? = nil
    ) {
        self.sequence = sequence
        self.token = token
        self.verdict = verdict
        self.due = due
        self.status = status
        self.detail = detail
        self.laneNotBefore = laneNotBefore
    }
}
