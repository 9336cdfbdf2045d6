/// The result of ``QueueStore/conclude(_:claiming:)``.
package struct Concluded: Sendable {
    /// One value per conclusion; `false` when the lease is no longer current, in which case nothing changed.
    package let isCurrent: [Bool]
    /// One batch per claim.
    package let claimed: [ClaimedBatch]
}

/// The state of a request, for callers that wait for it.
package struct StoredState: Hashable, Sendable {
    package let state: QueuedRequest.State
    package let holdReason: HoldReason?
    /// The HTTP status of the last attempt.
    package let status: Int?
    package let lastError: String?
}

/// An edit of single requests by a user.
package enum QueueEdit: Hashable, Sendable {
    case cancel
    case hold
    /// Releases the request, whatever the reason for the hold.
    case release
    /// `newKey`: whether the request gets a new idempotency key, so that the server does not recognize it.
    case retry(newKey: Bool)
}

/// The outcome of an edit by filter.
package struct FilteredEdit: Hashable, Sendable {
    package var result = FilteredEditResult()
    /// Sequence numbers of requests that were cancelled while they were being sent.
    package var cancelledInFlight: [Int64] = []
}

/// A selection of lanes by host and label.
package struct LaneSelection: Hashable, Sendable {
    /// The host of the lane's URLs; `nil` for any.
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
    /// Whether the lane has earlier requests that are not finished.
    package let isBehindOthers: Bool
    package let idempotencyKey: String?
    /// The current state, whether the request is new or was known.
    package let state: QueuedRequest.State
    /// The time from now until it may be sent.
    package let due: Duration?
    package let status: Int?
    package let lastError: String?
    package let durability: Durability
}

package struct LaneRecord: Hashable, Sendable {
    package let id: Int64
    package let key: LaneKey
    /// The time until the server accepts requests again.
    package let notBefore: Duration?
    /// The time until the lane's next request may be due; `nil` when nothing is pending, when the head of a FIFO lane
    /// is not pending, and while the lane is paused. At most the longest delay, so that a wrong clock is trusted no
    /// longer than that.
    package let due: Duration?
    package let isPaused: Bool
    /// Whether the lane had no requests, not even held ones, after one of the changes that the record covers.
    package var wasEmpty = false
}

package struct LaneClaim: Hashable, Sendable {
    package let lane: Int64
    package let limit: Int
    /// Makes all pending requests due, and releases those that are held for one of these reasons; `nil` does neither.
    package let releasing: Set<HoldReason>?

    package init(lane: Int64, limit: Int, releasing: Set<HoldReason>? = nil) {
        self.lane = lane
        self.limit = limit
        self.releasing = releasing
    }
}

package struct ClaimedBatch: Sendable {
    package let lane: Int64
    package let requests: [ClaimedRequest]
    /// As ``LaneRecord/due``, for the requests that remain.
    package let due: Duration?
    /// Whether another machine works on the lane, so that no request of it can be claimed.
    package let isElsewhere: Bool
}

package struct ClaimedRequest: Sendable {
    package let sequence: Int64
    package let id: String
    package let lease: Lease
    package let method: String
    package let url: String
    package let headers: [QueueRequest.Header]
    package let body: StoredBody
    package let key: KeyHeader?
    package let isAtMostOnce: Bool
    package let expectation: Expectation
    /// The status of the previous attempt, if it had one.
    package let lastStatus: Int?
    /// The time since the first of consecutive 409 responses; `nil` when the last response was no 409.
    package let conflictAge: Duration?
    /// The number of attempts, including this one.
    package let attempts: Int
    package let deferrals: Int
    /// The timeouts as the caller set them.
    package let timeouts: AttemptTimeouts
    /// The number of attempts that one of our timeouts cut off while the server may still have executed them.
    package let overruns: Int
}

package struct Conclusion: Sendable {
    package let sequence: Int64
    package let token: String
    package let verdict: Verdict
    /// For a retry: the time from now until the next attempt.
    package let delay: Duration
    package let status: Int?
    package let detail: String?
    /// Closes the lane for this duration, in the same transaction.
    package let laneClosure: Duration?
    /// The attempt that was made; `nil` when none was.
    package let attempt: AttemptRecord?
    /// The response to keep once the request is finished.
    package let response: RecordedResponse?
    /// The timeout that cut off the attempt while the server may still execute it. The next attempt waits for the same
    /// time.
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

/// A finished attempt.
package struct AttemptRecord: Hashable, Sendable {
    package let duration: Duration
    /// The result code of libcurl; 0 when a response was received.
    package let curlCode: Int32

    package init(duration: Duration, curlCode: Int32) {
        self.duration = duration
        self.curlCode = curlCode
    }
}
