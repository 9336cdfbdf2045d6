/// When everything is looked up anew. A pure value.
///
/// The first event after a quiet time is acted on at once. A storm of events is acted on every
/// ``spacing``; a storm that overruns the receive buffer less often, up to once a second. A quiet time
/// after the last event everything is looked up once more, because the kernel announces some changes
/// before it makes them, and once in a long while without any reason, because it makes some silently.
struct RecomputeSchedule: Sendable {
    /// Shortest time between two recomputations during a storm.
    static let spacing: Duration = .milliseconds(10)
    /// Waiting times while the receive buffer keeps overrunning: NetworkManager's cap is 1 s too.
    static let firstOverrunSpacing: Duration = .milliseconds(50)
    static let longestOverrunSpacing: Duration = .seconds(1)

    private let confirmDelay: Duration
    private let auditInterval: Duration

    private var lastRun: ContinuousClock.Instant?
    private var overrunsInARow = 0
    private var overrunSinceLastRun = false
    private var eventDue: ContinuousClock.Instant?
    private var confirmDue: ContinuousClock.Instant?
    private var auditDue: ContinuousClock.Instant

    init(confirmDelay: Duration, auditInterval: Duration, now: ContinuousClock.Instant) {
        self.confirmDelay = confirmDelay
        self.auditInterval = auditInterval
        auditDue = now + auditInterval
    }

    /// The next moment at which `takeDue(now:)` is worth asking.
    var nextDue: ContinuousClock.Instant {
        [eventDue, confirmDue, auditDue].compactMap(\.self).min()!
    }

    /// Notes that something may have changed.
    mutating func noteEvents(isOverrun: Bool, now: ContinuousClock.Instant) {
        confirmDue = now + confirmDelay
        if isOverrun, !overrunSinceLastRun {
            overrunSinceLastRun = true
            overrunsInARow += 1
        }
        let due = lastRun.map { max(now, $0 + currentSpacing) } ?? now
        eventDue = eventDue.map { min($0, due) } ?? due
    }

    private var currentSpacing: Duration {
        // The first overrun is answered like any event; from the second on the waiting time doubles.
        guard overrunsInARow > 1 else { return Self.spacing }
        let doublings = min(overrunsInARow - 2, 10)
        return min(Self.longestOverrunSpacing, Self.firstOverrunSpacing * (1 << doublings))
    }

    /// What has to be looked up anew.
    enum Run: Hashable, Sendable {
        /// What the events since the last run were about.
        case changed
        /// Everything, events or not.
        case everything
    }

    /// Takes the recomputation that is due, if any; it counts as done.
    mutating func takeDue(now: ContinuousClock.Instant) -> Run? {
        guard nextDue <= now else { return nil }
        let isConfirmed = confirmDue.map { $0 <= now } ?? false
        let run: Run = isConfirmed || auditDue <= now ? .everything : .changed
        if !overrunSinceLastRun { overrunsInARow = 0 }
        overrunSinceLastRun = false
        lastRun = now
        eventDue = nil
        if isConfirmed { confirmDue = nil }
        auditDue = now + auditInterval
        return run
    }
}
