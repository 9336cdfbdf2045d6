/// Who sends a request, until the outcome is written. Every later write names the lease's token, so that
/// a sender whose lease was taken away changes nothing.
package struct Lease: Hashable, Sendable {
    package let token: String
    /// The run of the queue that claimed it; rises with every opening of the store.
    package let ownerEpoch: Int64

    package init(token: String, ownerEpoch: Int64) {
        self.token = token
        self.ownerEpoch = ownerEpoch
    }
}

/// What an attempt means for its request.
package enum Verdict: Hashable, Sendable {
    case delivered(status: Int)
    /// Tried again. What was not sent for want of a network does not count as an attempt.
    case retry(countsAsAttempt: Bool)
    case held(HoldReason)
    case dead(DeathCause, reason: String)
}

/// What somebody wants of a request that is being sent, done as soon as its outcome allows.
package enum Wish: String, Hashable, Sendable {
    case cancel
    case hold
}

/// What never changes about a request and decides how it may move.
package struct RequestRules: Hashable, Sendable {
    /// Whether sending it twice does no harm: the method is idempotent or a key goes with it, and nobody
    /// asked for at most one sending.
    package let mayBeSentTwice: Bool
    /// After so many attempts that count it is given up; `nil` for never.
    package let maximumAttempts: Int?

    package init(mayBeSentTwice: Bool, maximumAttempts: Int? = nil) {
        self.mayBeSentTwice = mayBeSentTwice
        self.maximumAttempts = maximumAttempts
    }
}

/// Where one request is on its way, and the only rules by which it moves.
package struct RequestState: Hashable, Sendable {
    package enum Phase: Hashable, Sendable {
        /// Its body is being taken. Nothing but a file of the spool knows of it; a crash forgets it.
        case staging
        /// Waits for other requests to be delivered.
        case blocked
        case pending(due: Timestamp)
        case inflight(Lease, wish: Wish?)
        case held(HoldReason)
        case finished(Ending)
    }

    package enum Ending: Hashable, Sendable {
        case delivered(status: Int)
        case dead(DeathCause, reason: String)
        case cancelled
        /// A newer request with the same replace key took its place.
        case superseded
    }

    package enum Event: Hashable, Sendable {
        /// T1. It is on the disk.
        case accepted(due: Timestamp, isBlocked: Bool)
        /// T1b. A newer one has its replace key.
        case replaced
        /// T2. Its next attempt begins.
        case claimed(Lease)
        /// T3. Its attempt is over. `due` counts for a retry only.
        case concluded(token: String, Verdict, due: Timestamp)
        /// T4. Its sender is gone: the store was opened by a new owner, or the lease ran out.
        case abandoned(token: String, now: Timestamp)
        /// T5. Somebody does not want it any more.
        case cancelled
        /// T6. Its time is over, or its room is needed.
        case givenUp(DeathCause, reason: String)
        /// T7. Somebody wants it tried anew.
        case requeued(now: Timestamp)
        /// Somebody wants it to wait.
        case held
        /// The reasons' causes may be gone. `isBlocked`: it waits for others all the same.
        case released(Set<HoldReason>, now: Timestamp, isBlocked: Bool)
        /// What it waited for was delivered.
        case unblocked(now: Timestamp)
        /// What it waited for will never be delivered.
        case dependencyFailed
    }

    /// An event that does not fit the phase. Nothing changes.
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

    package static let expiredReason = "its time to live is over"

    package mutating func apply(_ event: Event) throws(Refusal) {
        switch event {
        case .accepted(let due, let isBlocked): try accept(due: due, isBlocked: isBlocked)
        case .claimed(let lease): try claim(lease)
        case .concluded(let token, let verdict, let due):
            conclude(verdict, wish: try wish(under: token), due: due)
        case .abandoned(let token, let now): abandon(wish: try wish(under: token), now: now)
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
            // Whoever holds it has not decided that it may go without.
            guard [.blocked, .held(.user), .held(.dependency)].contains(phase) else { throw .notBlocked }
            phase = .held(.dependency)
        }
    }

    /// Whether it is on its way and not being sent.
    package var isWaiting: Bool {
        switch phase {
        case .blocked, .pending, .held: true
        case .staging, .inflight, .finished: false
        }
    }
}

// MARK: - Sending

extension RequestState {
    private mutating func accept(due: Timestamp, isBlocked: Bool) throws(Refusal) {
        guard phase == .staging else { throw .notStaging }
        phase = isBlocked ? .blocked : .pending(due: due)
    }

    private mutating func claim(_ lease: Lease) throws(Refusal) {
        guard case .pending = phase else { throw .notPending }
        phase = .inflight(lease, wish: nil)
        attempts += 1
    }

    /// What is wanted of a request under the lease with this token.
    private func wish(under token: String) throws(Refusal) -> Wish? {
        guard case .inflight(let lease, let wish) = phase, lease.token == token else { throw .staleLease }
        return wish
    }

    /// An outcome that is final is told as it is, whatever was wished meanwhile.
    private mutating func conclude(_ verdict: Verdict, wish: Wish?, due: Timestamp) {
        switch verdict {
        case .delivered(let status): phase = .finished(.delivered(status: status))
        case .dead(let cause, let reason): phase = .finished(.dead(cause, reason: reason))
        case .held(let reason): wait(.held(reason), wish)
        case .retry(let countsAsAttempt):
            if !countsAsAttempt {
                attempts -= 1
                deferrals += 1
            }
            if countsAsAttempt, let most = rules.maximumAttempts, attempts >= most {
                let reason = "it failed \(attempts) \(attempts == 1 ? "time" : "times")"
                phase = .finished(.dead(.attemptsUsedUp, reason: reason))
            } else {
                wait(.pending(due: due), wish)
            }
        }
    }

    private mutating func abandon(wish: Wish?, now: Timestamp) {
        wait(rules.mayBeSentTwice ? .pending(due: now) : .held(.ambiguous), wish)
    }

    private mutating func wait(_ waiting: Phase, _ wish: Wish?) {
        switch wish {
        case .cancel: phase = .finished(.cancelled)
        case .hold where waiting != .held(.ambiguous): phase = .held(.user)
        case .hold, nil: phase = waiting
        }
    }
}

// MARK: - What people ask for

extension RequestState {
    private mutating func finishWaiting(_ ending: Ending) throws(Refusal) {
        guard isWaiting else { throw .notWaiting }
        phase = .finished(ending)
    }

    private mutating func cancel() throws(Refusal) {
        switch phase {
        case .inflight(let lease, _): phase = .inflight(lease, wish: .cancel)
        case .blocked, .pending, .held: phase = .finished(.cancelled)
        case .staging, .finished: throw .alreadyFinished
        }
    }

    private mutating func hold() throws(Refusal) {
        switch phase {
        // A cancellation stays one.
        case .inflight(let lease, let wish): phase = .inflight(lease, wish: wish ?? .hold)
        case .blocked, .pending: phase = .held(.user)
        // What a mended cause would let go stays now. Other reasons end by a person's hand only, and tell more.
        case .held(let reason): if HoldReason.mendable.contains(reason) { phase = .held(.user) }
        case .staging, .finished: throw .alreadyFinished
        }
    }

    private mutating func release(_ reasons: Set<HoldReason>, to next: Phase) throws(Refusal) {
        switch phase {
        case .held(let reason) where reasons.contains(reason): phase = next
        case .inflight(let lease, .hold) where reasons.contains(.user): phase = .inflight(lease, wish: nil)
        default: throw .notHeld
        }
    }

    /// What was given up or waits is tried now and begins to count anew.
    private mutating func requeue(now: Timestamp) throws(Refusal) {
        switch phase {
        case .finished(.dead), .held, .pending, .blocked: break
        case .staging, .inflight, .finished: throw .notRequeueable
        }
        phase = .pending(due: now)
        (attempts, deferrals) = (0, 0)
    }
}
