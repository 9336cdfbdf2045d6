/// An edit of a request in flight, which is applied as soon as the attempt's outcome allows it.
package enum PendingEdit: String, Hashable, Sendable {
    case cancel
    case hold
}

/// The immutable properties of a request that determine its state transitions.
package struct RequestRules: Hashable, Sendable {
    /// Whether sending it twice is harmless: the method is idempotent or the request has a key, and it is not an
    /// at-most-once request.
    package let mayBeSentTwice: Bool
    /// The number of counted attempts after which it is given up; `nil` for no limit.
    package let maximumAttempts: Int?

    package init(mayBeSentTwice: Bool, maximumAttempts: Int? = nil) {
        self.mayBeSentTwice = mayBeSentTwice
        self.maximumAttempts = maximumAttempts
    }
}

/// The state machine of one request. All state changes follow its transitions.
package struct RequestLifecycle: Hashable, Sendable {
    package enum Phase: Hashable, Sendable {
        /// Its body is being stored. Only a spool file exists, and a crash discards it.
        case staging
        /// It waits until other requests are delivered.
        case blocked
        case pending(due: Timestamp)
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

    package enum Event: Hashable, Sendable {
        /// T1. It is stored on disk.
        case accepted(due: Timestamp, isBlocked: Bool)
        /// T1b. A newer request has the same replace key.
        case replaced
        /// T2. Its next attempt begins.
        case claimed(Lease)
        /// T3. Its attempt has ended. `due` applies only to a retry.
        case concluded(token: String, Verdict, due: Timestamp)
        /// T4. Its sender is gone: a new owner opened the store, or the lease expired.
        case abandoned(token: String, now: Timestamp)
        /// T5. A user or program cancels it.
        case cancelled
        /// T6. Its time has passed, or its room is needed.
        case givenUp(DeathCause, reason: String)
        /// T7. A user or program retries it.
        case requeued(now: Timestamp)
        /// A user or program holds it.
        case held
        /// The causes of these hold reasons may be resolved. `isBlocked`: it still waits for its dependencies.
        case released(Set<HoldReason>, now: Timestamp, isBlocked: Bool)
        /// Its dependencies were delivered.
        case unblocked(now: Timestamp)
        /// One of its dependencies will never be delivered.
        case dependencyFailed
    }

    /// The error for an event that does not apply to the phase. The state does not change.
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
        case .unblocked(let now):
            guard phase == .blocked else { throw .notBlocked }
            phase = .pending(due: now)
        case .dependencyFailed:
            // A user's hold is not a decision to send the request without its dependency.
            guard [.blocked, .held(.user), .held(.dependency)].contains(phase) else { throw .notBlocked }
            phase = .held(.dependency)
        }
    }

    /// Whether it is unfinished and not in flight.
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

    /// Returns the pending edit of the request, if the token matches its lease.
    private func pendingEdit(under token: String) throws(Refusal) -> PendingEdit? {
        guard case .inflight(let lease, let pendingEdit) = phase, lease.token == token else {
            throw .staleLease
        }
        return pendingEdit
    }

    /// Applies a verdict. A final verdict is recorded as it is, even if an edit is pending.
    private mutating func conclude(_ verdict: Verdict, pendingEdit: PendingEdit?, due: Timestamp) {
        switch verdict {
        case .delivered(let status): phase = .finished(.delivered(status: status))
        case .dead(let cause, let reason): phase = .finished(.dead(cause, reason: reason))
        case .held(let reason): wait(.held(reason), pendingEdit)
        case .retry(let countsAsAttempt):
            if !countsAsAttempt {
                attempts -= 1
                deferrals += 1
            }
            if countsAsAttempt, let most = rules.maximumAttempts, attempts >= most {
                let reason = "failed \(attempts) \(attempts == 1 ? "time" : "times")"
                phase = .finished(.dead(.attemptsUsedUp, reason: reason))
            } else {
                wait(.pending(due: due), pendingEdit)
            }
        }
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
        case .blocked, .pending, .held: phase = .finished(.cancelled)
        case .staging, .finished: throw .alreadyFinished
        }
    }

    private mutating func hold() throws(Refusal) {
        switch phase {
        // A pending cancellation takes precedence.
        case .inflight(let lease, let pendingEdit):
            phase = .inflight(lease, pendingEdit: pendingEdit ?? .hold)
        case .blocked, .pending: phase = .held(.user)
        // A user's hold replaces reasons that a flush or restart would release. Other reasons already wait for a user
        // and say more.
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

    /// Retries a waiting, held or dead request now, with reset counters.
    private mutating func requeue(now: Timestamp) throws(Refusal) {
        switch phase {
        case .finished(.dead), .held, .pending, .blocked: break
        case .staging, .inflight, .finished: throw .notRequeueable
        }
        phase = .pending(due: now)
        (attempts, deferrals) = (0, 0)
    }
}
