/// An edit of a request in flight. It is applied when the attempt has ended without a final outcome.
package enum PendingEdit: String, Hashable, Sendable {
    case cancel
    case hold
}

/// The immutable properties of a request that determine its state transitions.
package struct RequestRules: Hashable, Sendable {
    /// Whether the request may be sent twice: its method is idempotent or it has an idempotency key, and
    /// ``EnqueueOptions/isAtMostOnce`` is not set.
    package let mayBeSentTwice: Bool
    /// The number of counted attempts after which the request is given up; `nil` for no limit.
    package let maximumAttempts: Int?

    package init(mayBeSentTwice: Bool, maximumAttempts: Int? = nil) {
        self.mayBeSentTwice = mayBeSentTwice
        self.maximumAttempts = maximumAttempts
    }
}

/// The state machine of one request. It decides every change of a request's state.
package struct RequestLifecycle: Hashable, Sendable {
    package enum Phase: Hashable, Sendable {
        /// The request's body is being stored. The request has no row yet, so a crash discards the request.
        case staging
        /// The request waits until its dependencies are delivered.
        case blocked
        case pending(due: Timestamp)
        /// An attempt is in progress. `pendingEdit` is applied when the attempt ends.
        case inflight(Lease, pendingEdit: PendingEdit?)
        case held(HoldReason)
        case finished(Ending)
    }

    package enum Ending: Hashable, Sendable {
        case delivered(status: Int)
        case dead(DeathCause, reason: String)
        case cancelled
        /// A newer request with the same replace key replaced it.
        case superseded
    }

    /// An event in the life of the request. T1 to T7 are the names of transitions that other comments refer to.
    package enum Event: Hashable, Sendable {
        /// T1. The request was stored on disk. `isBlocked`: whether it waits for its dependencies.
        case accepted(due: Timestamp, isBlocked: Bool)
        /// T1b. A newer request with the same replace key was stored.
        case replaced
        /// T2. The request's next attempt begins.
        case claimed(Lease)
        /// T3. The attempt has ended. `due` applies only if the verdict is a retry.
        case concluded(token: String, Verdict, due: Timestamp)
        /// T4. The sender ended during the attempt: a new owner opened the store, or the lease expired.
        case abandoned(token: String, now: Timestamp)
        /// T5. A user or program cancels the request, which may be dead.
        case cancelled
        /// T6. The request's time has passed, or a newer request needs its room.
        case givenUp(DeathCause, reason: String)
        /// T7. A user or program retries the request.
        case requeued(now: Timestamp)
        /// A user or program holds the request.
        case held
        /// Holds with one of these reasons end. `isBlocked`: whether the request still waits for its dependencies.
        case released(Set<HoldReason>, now: Timestamp, isBlocked: Bool)
        /// The credential because of which the request is held has changed. The request's counters start again: earlier
        /// attempts say nothing about the new credential, and the retry budget must not delay the request.
        case credentialChanged(now: Timestamp, isBlocked: Bool)
        /// The last dependency of the request was delivered.
        case unblocked(now: Timestamp)
        /// A dependency of the request was given up, cancelled or replaced.
        case dependencyFailed
        /// The request must not be sent as it is stored: it cannot be decrypted, or its constraints cannot be
        /// evaluated.
        case unusable(HoldReason)
    }

    /// The error for an event that does not apply to the current phase. The phase does not change.
    package enum Refusal: Error, Hashable, Sendable {
        case notStaging
        case notPending
        case notWaiting
        case notBlocked
        case notHeld
        case staleLease
        case alreadyFinished
        case notRequeueable
    }

    package private(set) var phase: Phase
    package private(set) var attempts: Int
    package private(set) var deferrals: Int
    package let rules: RequestRules

    package init(phase: Phase = .staging, attempts: Int = 0, deferrals: Int = 0, rules: RequestRules) {
        self.phase = phase
        self.attempts = attempts
        self.deferrals = deferrals
        self.rules = rules
    }

    package static let expiredReason = "time to live exceeded"
    package static let interruptedReason = "the attempt was interrupted: the sending process ended"

    package mutating func apply(_ event: Event) throws(Refusal) {
        switch event {
        case .accepted(let due, let isBlocked): try accept(due: due, isBlocked: isBlocked)
        case .claimed(let lease): try claim(lease)
        case .concluded(let token, let verdict, let due):
            conclude(verdict, pendingEdit: try pendingEdit(under: token), due: due)
        case .abandoned(let token, let now): abandon(pendingEdit: try pendingEdit(under: token), now: now)
        case .replaced: try finishWaiting(.superseded)
        case .givenUp(let cause, let reason): try finishWaiting(.dead(cause, reason: reason))
        case .cancelled: try cancel()
        case .requeued(let now): try requeue(now: now)
        case .held: try hold()
        case .released(let reasons, let now, let isBlocked):
            try release(reasons, to: isBlocked ? .blocked : .pending(due: now))
        case .credentialChanged(let now, let isBlocked):
            try release([.auth], to: isBlocked ? .blocked : .pending(due: now))
            (attempts, deferrals) = (0, 0)
        case .unblocked(let now):
            guard phase == .blocked else { throw .notBlocked }
            phase = .pending(due: now)
        case .dependencyFailed:
            // A held request is included, because no hold is a decision to send the request without its dependency.
            // Imported requests with dependencies may be held for any reason.
            switch phase {
            case .blocked, .held: phase = .held(.dependency)
            case .staging, .pending, .inflight, .finished: throw .notBlocked
            }
        case .unusable(let reason):
            guard case .pending = phase else { throw .notPending }
            phase = .held(reason)
        }
    }

    /// Whether the request is stored, unfinished and not in flight.
    package var isWaiting: Bool {
        switch phase {
        case .blocked, .pending, .held: true
        case .staging, .inflight, .finished: false
        }
    }
}

// MARK: - Sending

extension RequestLifecycle {
    private mutating func accept(due: Timestamp, isBlocked: Bool) throws(Refusal) {
        guard phase == .staging else { throw .notStaging }
        phase = isBlocked ? .blocked : .pending(due: due)
    }

    private mutating func claim(_ lease: Lease) throws(Refusal) {
        guard case .pending = phase else { throw .notPending }
        phase = .inflight(lease, pendingEdit: nil)
        attempts += 1
    }

    /// Returns the pending edit of the request in flight.
    ///
    /// - Throws: ``Refusal/staleLease`` if the request is not in flight under a lease with this token.
    private func pendingEdit(under token: String) throws(Refusal) -> PendingEdit? {
        guard case .inflight(let lease, let pendingEdit) = phase, lease.token == token else {
            throw .staleLease
        }
        return pendingEdit
    }

    /// Applies a verdict. If the verdict is final, a pending edit has no effect.
    private mutating func conclude(_ verdict: Verdict, pendingEdit: PendingEdit?, due: Timestamp) {
        switch verdict {
        case .delivered(let status): phase = .finished(.delivered(status: status))
        case .dead(let cause, let reason): phase = .finished(.dead(cause, reason: reason))
        case .held(let reason):
            // The attempt failed for lack of a credential. Otherwise such attempts would use up the maximum number when
            // a flush or a restart repeats them.
            if reason == .auth { discountAttempt() }
            wait(.held(reason), pendingEdit)
        case .retry(let countsAsAttempt):
            if !countsAsAttempt { discountAttempt() }
            if countsAsAttempt, let most = rules.maximumAttempts, attempts >= most {
                let reason = "failed \(attempts) \(attempts == 1 ? "time" : "times")"
                phase = .finished(.dead(.attemptsUsedUp, reason: reason))
            } else {
                wait(.pending(due: due), pendingEdit)
            }
        }
    }

    private mutating func discountAttempt() {
        attempts -= 1
        deferrals += 1
    }

    private mutating func abandon(pendingEdit: PendingEdit?, now: Timestamp) {
        wait(rules.mayBeSentTwice ? .pending(due: now) : .held(.ambiguous), pendingEdit)
    }

    private mutating func wait(_ waiting: Phase, _ pendingEdit: PendingEdit?) {
        switch pendingEdit {
        case .cancel: phase = .finished(.cancelled)
        case .hold where waiting != .held(.ambiguous): phase = .held(.user)
        case .hold, nil: phase = waiting
        }
    }
}

// MARK: - Edits

extension RequestLifecycle {
    private mutating func finishWaiting(_ ending: Ending) throws(Refusal) {
        guard isWaiting else { throw .notWaiting }
        phase = .finished(ending)
    }

    private mutating func cancel() throws(Refusal) {
        switch phase {
        case .inflight(let lease, _): phase = .inflight(lease, pendingEdit: .cancel)
        case .blocked, .pending, .held, .finished(.dead): phase = .finished(.cancelled)
        case .staging, .finished: throw .alreadyFinished
        }
    }

    private mutating func hold() throws(Refusal) {
        switch phase {
        // A pending cancellation takes precedence over the hold.
        case .inflight(let lease, let pendingEdit):
            phase = .inflight(lease, pendingEdit: pendingEdit ?? .hold)
        case .blocked, .pending: phase = .held(.user)
        // The user's hold replaces a reason that a flush or a restart would release. Any other hold already lasts until
        // a user ends it, and its reason is more specific.
        case .held(let reason): if HoldReason.releasableByRestart.contains(reason) { phase = .held(.user) }
        case .staging, .finished: throw .alreadyFinished
        }
    }

    private mutating func release(_ reasons: Set<HoldReason>, to next: Phase) throws(Refusal) {
        switch phase {
        case .held(let reason) where reasons.contains(reason): phase = next
        case .inflight(let lease, .hold) where reasons.contains(.user):
            phase = .inflight(lease, pendingEdit: nil)
        default: throw .notHeld
        }
    }

    /// Makes a waiting, held or dead request due now, and resets its counters.
    private mutating func requeue(now: Timestamp) throws(Refusal) {
        switch phase {
        case .finished(.dead), .held, .pending, .blocked: break
        case .staging, .inflight, .finished: throw .notRequeueable
        }
        phase = .pending(due: now)
        (attempts, deferrals) = (0, 0)
    }
}

/// The effect of an attempt on its request.
package enum Verdict: Hashable, Sendable {
    case delivered(status: Int)
    /// The request is retried. `countsAsAttempt` is `false`, for example, if the network was down.
    case retry(countsAsAttempt: Bool)
    case held(HoldReason)
    case dead(DeathCause, reason: String)

    var isDelivered: Bool {
        if case .delivered = self { true } else { false }
    }
}

/// The exclusive right to send a request until its outcome is stored.
///
/// The write of the outcome names the lease's token. If the sender has lost its lease, the token no longer matches and
/// the write changes nothing.
package struct Lease: Hashable, Sendable {
    package let token: String
    /// The epoch of the store's owner that claimed the request. Each time the store is opened, the epoch increases by
    /// one.
    package let ownerEpoch: Int64

    package init(token: String, ownerEpoch: Int64) {
        self.token = token
        self.ownerEpoch = ownerEpoch
    }
}

/// The reason why the queue gave a request up. Code that gives up a request must name one of these causes.
///
/// The table "Every way to be given up" in `WhatFailuresMean.md` describes each cause. A test compares the names.
package enum DeathCause: String, Hashable, Sendable, CaseIterable {
    /// The server responded with a status that another attempt would not change.
    case refused
    /// The server redirected the request. The queue does not follow redirects.
    case redirected
    /// The server responded only with 409 for ``FailureTable/longestConflict`` (10 minutes).
    case conflict
    /// The client cannot send the stored request, for example because of a malformed URL.
    case unsendable
    /// The stored body is missing or was changed.
    case bodyLost = "body-lost"
    /// The maximum number of attempts (``EnqueueOptions/maximumAttempts``) has failed.
    case attemptsUsedUp = "attempts-used-up"
    /// The time to live or the deadline has passed.
    case expired
    /// The queue or the lane was full, or the quota of the user was reached, and a newer request needed the room.
    case dropped
    /// The request was imported, and had already been given up in the queue that exported it.
    case imported
}

/// The number of repeated requests that a claim may take, because retries have a budget.
package struct RetryAllowance: Hashable, Sendable {
    /// The maximum number of requests that were tried before.
    package let count: Int
    /// The time until the budget permits another retry. Requests beyond the maximum are postponed by this time and a
    /// multiple of ``spacing``.
    package let wait: Duration

    /// The time between two postponed requests.
    static let spacing: Duration = .seconds(1)

    package init(count: Int, wait: Duration) {
        self.count = count
        self.wait = wait
    }
}

/// What a claim took, for the budget of retries.
package struct RetryUse: Hashable, Sendable {
    /// The number of first attempts.
    package var firstAttempts = 0
    /// The number of retries, including those of a claim that could take any number.
    package var retries = 0
    /// The number of retries that were reserved for the claim.
    package var reserved = 0
    /// The longest time by which the claim postponed a retry that the budget did not permit; `nil` if it postponed
    /// none.
    package var postponement: Duration?

    package init() {}

    /// - Parameters:
    ///   - allowance: The allowance of the claim; `nil` if nothing was reserved for it.
    ///   - retries: The number of requests that were tried before.
    ///   - postponement: The value of ``postponement``. Default `nil`.
    package init(of allowance: RetryAllowance?, taken: Int, retries: Int, postponement: Duration? = nil) {
        firstAttempts = taken - retries
        self.retries = retries
        reserved = allowance?.count ?? 0
        self.postponement = postponement
    }
}
