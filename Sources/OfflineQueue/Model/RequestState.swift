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
    case dead(reason: String)
}

/// Where one request is on its way, and the only rules by which it moves.
package struct RequestState: Hashable, Sendable {
    package enum Phase: Hashable, Sendable {
        case pending(due: Timestamp)
        case inflight(Lease)
        case held(HoldReason)
        case delivered(status: Int)
        case dead(reason: String)
    }

    package enum Event: Hashable, Sendable {
        case claimed(Lease)
        /// `due` counts for a retry only.
        case concluded(token: String, Verdict, due: Timestamp)
        /// The store was opened by a new owner.
        case ownerChanged(to: Int64, now: Timestamp)
        /// The reasons' causes may be gone.
        case released(Set<HoldReason>, now: Timestamp)
    }

    /// An event that does not fit the phase. Nothing changes.
    package enum Refusal: Error, Hashable, Sendable {
        case notPending
        case staleLease
        case ownerIsAlive
        case notHeld
    }

    package private(set) var phase: Phase
    package private(set) var attempts: Int
    package private(set) var deferrals: Int
    /// Whether sending it twice does no harm: the method is idempotent or a key goes with it.
    package let mayBeSentTwice: Bool

    package init(phase: Phase, attempts: Int = 0, deferrals: Int = 0, mayBeSentTwice: Bool) {
        self.phase = phase
        self.attempts = attempts
        self.deferrals = deferrals
        self.mayBeSentTwice = mayBeSentTwice
    }

    package mutating func apply(_ event: Event) throws(Refusal) {
        switch event {
        case .claimed(let lease):
            guard case .pending = phase else { throw .notPending }
            phase = .inflight(lease)
            attempts += 1
        case .concluded(let token, let verdict, let due):
            guard case .inflight(let lease) = phase, lease.token == token else { throw .staleLease }
            conclude(verdict, due: due)
        case .ownerChanged(let epoch, let now):
            guard case .inflight(let lease) = phase, lease.ownerEpoch != epoch else { throw .ownerIsAlive }
            phase = mayBeSentTwice ? .pending(due: now) : .held(.ambiguous)
        case .released(let reasons, let now):
            guard case .held(let reason) = phase, reasons.contains(reason) else { throw .notHeld }
            phase = .pending(due: now)
        }
    }

    private mutating func conclude(_ verdict: Verdict, due: Timestamp) {
        switch verdict {
        case .delivered(let status): phase = .delivered(status: status)
        case .dead(let reason): phase = .dead(reason: reason)
        case .held(let reason): phase = .held(reason)
        case .retry(let countsAsAttempt):
            phase = .pending(due: due)
            if !countsAsAttempt {
                attempts -= 1
                deferrals += 1
            }
        }
    }
}
