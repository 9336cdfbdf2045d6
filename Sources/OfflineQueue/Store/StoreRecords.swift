/// The result of ``QueueStore/conclude(_:claiming:)``.
package struct Concluded: Sendable {
    /// One value per conclusion: `false` if its lease was no longer current, so that the conclusion was ignored.
    package let isCurrent: [Bool]
    /// The claimed requests: one batch per claim.
    package let claimed: [ClaimedBatch]
}

/// The state of a request, for callers that wait until it is finished.
package struct StoredState: Hashable, Sendable {
    package let state: QueuedRequest.State
    package let holdReason: HoldReason?
    /// The HTTP status of the last attempt; `nil` if it received none.
    package let status: Int?
    package let lastError: String?
    /// The id of the user who enqueued the request; `nil` if that is not known.
    package let submitter: UInt32?
}

/// A finished request with a tag that no handler has handled yet.
package struct StoredCompletion: Hashable, Sendable {
    /// The position in the order in which the requests have ended.
    package let position: Int64
    package let request: RequestDetails
}

/// An edit of requests by a user or program.
package enum QueueEdit: Hashable, Sendable {
    case cancel
    /// Cancels a request that has not ended. Unlike ``cancel``, it refuses a dead request, which can still be retried.
    /// The queue uses it only with ids, never with a filter.
    case withdraw
    case hold
    /// Releases a held request, whatever the reason for the hold.
    case release
    /// Makes a waiting, held or dead request pending and due now. `newKey` is whether it gets a new idempotency key, so
    /// that the server does not treat it as a repetition. `quota` is what the unfinished requests of its submitter may
    /// use; `nil` for no quota.
    case retry(newKey: Bool, quota: UserQuota? = nil)

    /// Whether the edit ends a hold.
    var releases: Bool {
        switch self {
        case .release, .retry: true
        case .cancel, .withdraw, .hold: false
        }
    }

    /// Whether the edit cancels requests, and so ends their attempts.
    var cancels: Bool { self == .cancel || self == .withdraw }
}

/// The result of an edit by filter.
package struct FilteredEdit: Hashable, Sendable {
    package var result = FilteredEditResult()
    /// The sequence numbers of requests that were in flight when they were cancelled. The caller must end their
    /// attempts.
    package var cancelledInFlight: [Int64] = []
}

/// The result of enqueuing one request.
package struct EnqueuedRequest: Hashable, Sendable {
    package let id: String
    package let lane: LaneRecord
    package let outcome: Receipt.Outcome
    /// Whether earlier requests of the lane are not finished.
    package let isBehindOthers: Bool
    package let idempotencyKey: String?
    /// The request's current state. If the id was already in the store, this is the state of the stored request.
    package let state: QueuedRequest.State
    /// The time from now until the request is due; `nil` if it is not pending.
    package let due: Duration?
    package let status: Int?
    package let lastError: String?
    package let durability: Durability
}

/// A lane, as the store reports it to the scheduler.
package struct LaneRecord: Hashable, Sendable {
    package let id: Int64
    package let key: LaneKey
    /// The time for which the server closed the lane with `Retry-After`; `nil` if it did not.
    package let notBefore: Duration?
    /// The time until the lane's next request may be due. It is at most ``StoreSettings/longestDelay``, which limits
    /// the effect of a wrong clock.
    ///
    /// `nil` if no request is pending, if the first request of a FIFO lane is not pending, or if the lane is paused.
    package let due: Duration?
    package let isPaused: Bool
    /// Whether the lane had no unfinished requests after the change of this record. Held requests are unfinished, too.
    /// After ``LaneChanges`` has merged several records, this is `true` if it was `true` in any of them.
    package var wasEmpty = false
    /// Whether a user or program has released a request of the lane.
    package var wasReleased = false
}

/// The result of ``QueueStore/pauses(in:)``.
package struct LanePauses: Sendable {
    /// Whether the whole queue is paused.
    package let isQueuePaused: Bool
    /// The selected lanes that were paused individually, sorted by host and label; at most
    /// ``QueueStatistics/maximumPausedLanes``.
    package let lanes: [QueueStatistics.PausedLane]
}

/// A call to claim requests of a lane.
package struct LaneClaim: Hashable, Sendable {
    package let lane: Int64
    /// The maximum number of requests to claim.
    package let limit: Int
    /// The hold reasons whose requests are released before the claim. If this is not `nil`, even if it is empty, all
    /// pending requests of the lane become due as well.
    package let releasing: Set<HoldReason>?
    /// The number of requests that may be taken although they were tried before; `nil` for any number. Further due
    /// requests that were tried before are postponed.
    package let retries: RetryAllowance?

    package init(
        lane: Int64,
        limit: Int,
        releasing: Set<HoldReason>? = nil,
        retries: RetryAllowance? = nil
    ) {
        self.lane = lane
        self.limit = limit
        self.releasing = releasing
        self.retries = retries
    }
}

/// The result of a ``LaneClaim``.
package struct ClaimedBatch: Sendable {
    package let lane: Int64
    package let requests: [ClaimedRequest]
    /// The time until the next of the remaining requests may be due, with the same limits as ``LaneRecord/due``.
    package let due: Duration?
    /// The longest time by which the claim postponed a retry that its allowance did not permit; `nil` if it postponed
    /// none.
    package var postponement: Duration?
}

/// A request that is claimed under a lease, with everything that an attempt needs.
package struct ClaimedRequest: Sendable {
    package let sequence: Int64
    package let id: String
    package let lease: Lease
    package let method: String
    package let url: String
    package let headers: [QueueRequest.Header]
    package let body: StoredBody
    /// The idempotency key and its header field; `nil` if the request has none.
    package let key: KeyHeader?
    /// Whether the server may receive the request twice without harm.
    package let mayBeSentTwice: Bool
    /// The options, except those of the lane and the times.
    package let options: EnqueueOptions
    /// The HTTP status of the last attempt that received one; `nil` if none did.
    package let lastStatus: Int?
    /// The time since the first of consecutive 409 responses; `nil` if the last response was not a 409.
    package let conflictAge: Duration?
    /// The number of counted attempts, including this one.
    package let attempts: Int
    /// The number of attempts that did not count, for example because there was no path.
    package let deferrals: Int
    /// The number of attempts that ended with a timeout while the server may still have been executing them. Each
    /// doubles the response timeout.
    package let overruns: Int
}

/// The outcome of an attempt, to be stored under the token of its lease.
package struct Conclusion: Sendable {
    package let sequence: Int64
    package let token: String
    package let verdict: Verdict
    /// The time from now until the next attempt, if the request is retried.
    package let delay: Duration
    package let status: Int?
    package let detail: String?
    /// The time for which the same transaction closes the lane, because the server sent `Retry-After`; `nil` leaves the
    /// lane as it is.
    package let laneClosure: Duration?
    /// The attempt to record; `nil` if nothing was sent.
    package let attempt: AttemptRecord?
    /// The response, which is kept when the request is finished.
    package let response: RecordedResponse?
    /// The timeout that ended the attempt before the server responded; `nil` if none did. The server may still be
    /// executing the request, so the next attempt waits for the same time.
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

/// A position in the pass that encrypts stored requests with the current key.
package struct ResealCursor: Hashable, Sendable {
    package enum Table: String, Hashable, Sendable {
        case request
        case history
    }

    package var table = Table.request
    /// The number of the last row that was examined.
    package var position: Int64 = 0
    /// The number of retried dead requests at the beginning of the pass; `nil` before the pass has begun.
    package var restored: Int?
    /// The number of requests that could not be encrypted now: their body is being sent, or an error occurred.
    package var postponed = 0
    /// The first error of the pass, in words for users; `nil` if there was none.
    package var problem: String?

    package init() {}
}

/// The record of a finished attempt.
package struct AttemptRecord: Hashable, Sendable {
    package let duration: Duration
    /// The `CURLcode` of the transfer; 0 if a response was received.
    package let curlCode: Int32

    package init(duration: Duration, curlCode: Int32) {
        self.duration = duration
        self.curlCode = curlCode
    }
}
