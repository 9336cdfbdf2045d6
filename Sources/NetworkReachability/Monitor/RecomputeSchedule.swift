internal import NetwatchEventLoop

/// Schedules new lookups. A pure value.
///
/// - The first event after a quiet period causes a lookup immediately.
/// - During a storm of events, lookups run every ``spacing``. If the storm overruns the receive buffer, they run less
///   often, down to once a second.
/// - After a quiet period, everything is looked up again, because the kernel announces some changes before it makes
///   them. If events keep arriving, this still happens from time to time.
/// - Everything is also looked up at long intervals without any event, because the kernel makes some changes
///   silently.
struct RecomputeSchedule: Sendable {
    /// The minimum time between two recomputations during a storm.
    static let spacing: Duration = .milliseconds(10)
    /// The delays while the receive buffer keeps overrunning. NetworkManager's maximum is also 1 s.
    static let initialOverrunSpacing: Duration = .milliseconds(50)
    static let maxOverrunSpacing: Duration = .seconds(1)

    /// The maximum delay of a confirmation while events keep arriving, as a multiple of the confirm delay.
    static let maxConfirmFactor = 10

    private let confirmDelay: Duration
    private let auditInterval: Duration

    private var lastRun: ContinuousClock.Instant?
    private var consecutiveOverruns = 0
    private var overrunSinceLastRun = false
    private var eventDue: ContinuousClock.Instant?
    private var confirmDue: ContinuousClock.Instant?
    private var confirmDeadline: ContinuousClock.Instant?
    private var auditDue: ContinuousClock.Instant

    init(confirmDelay: Duration, auditInterval: Duration, now: ContinuousClock.Instant) {
        self.confirmDelay = confirmDelay
        self.auditInterval = auditInterval
        auditDue = now + auditInterval
    }

    /// The next time at which `takeDue(now:)` should be called.
    var nextDue: ContinuousClock.Instant {
        min(earliest(eventDue, pacedConfirmDue) ?? auditDue, auditDue)
    }

    /// When the confirmation is due, but not before pending events, which are delayed when there are too many.
    private var pacedConfirmDue: ContinuousClock.Instant? {
        confirmDue.map { max($0, eventDue ?? $0) }
    }

    /// Records that something may have changed.
    mutating func noteEvents(isOverrun: Bool, now: ContinuousClock.Instant) {
        let deadline = confirmDeadline ?? now + confirmDelay * Self.maxConfirmFactor
        confirmDeadline = deadline
        confirmDue = min(now + confirmDelay, deadline)
        if isOverrun, !overrunSinceLastRun {
            overrunSinceLastRun = true
            consecutiveOverruns += 1
        }
        let due = lastRun.map { max(now, $0 + currentSpacing) } ?? now
        eventDue = eventDue.map { min($0, due) } ?? due
    }

    private var currentSpacing: Duration {
        // The first overrun is handled like any event. From the second one on, the delay doubles.
        guard consecutiveOverruns > 1 else { return Self.spacing }
        return Self.initialOverrunSpacing.doubled(
            times: consecutiveOverruns - 2,
            upTo: Self.maxOverrunSpacing
        )
    }

    /// What to look up.
    enum Run: Hashable, Sendable {
        /// The addresses that events since the last run may affect.
        case changed
        /// All addresses, whether or not there were events.
        case everything
    }

    /// Returns the due recomputation, if any, and marks it as done.
    mutating func takeDue(now: ContinuousClock.Instant) -> Run? {
        guard nextDue <= now else { return nil }
        let isConfirmed = pacedConfirmDue.map { $0 <= now } ?? false
        let run: Run = isConfirmed || auditDue <= now ? .everything : .changed
        if !overrunSinceLastRun { consecutiveOverruns = 0 }
        overrunSinceLastRun = false
        // A confirmation does not delay the next event, which is handled immediately.
        if eventDue != nil { lastRun = now }
        eventDue = nil
        if isConfirmed { (confirmDue, confirmDeadline) = (nil, nil) }
        auditDue = now + auditInterval
        return run
    }
}
