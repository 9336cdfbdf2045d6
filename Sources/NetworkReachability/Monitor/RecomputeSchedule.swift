/// When everything is looked up anew. A pure value.
///
/// The first event after a quiet time is acted on at once. A storm of events is acted on every
/// ``spacing``; a storm that overruns the receive buffer less often, up to once a second. A quiet time
/// after the last event everything is looked up once more, because the kernel announces some changes
/// before it makes them; and if there is no quiet time, now and then all the same. Once in a long while
/// everything is looked up without any reason, because the kernel makes some changes silently.
struct RecomputeSchedule: Sendable {
    /// Shortest time between two recomputations during a storm.
    static let spacing: Duration = .milliseconds(10)
    /// Waiting times while the receive buffer keeps overrunning: NetworkManager's cap is 1 s too.
    static let firstOverrunSpacing: Duration = .milliseconds(50)
    static let longestOverrunSpacing: Duration = .seconds(1)

    /// How many times the delay a confirmation is put off at most while events keep coming.
    static let longestConfirmFactor = 10

    private let confirmDelay: Duration
    private let auditInterval: Duration

    private var lastRun: ContinuousClock.Instant?
    private var overrunsInARow = 0
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

    /// The next moment at which `takeDue(now:)` is worth asking.
    var nextDue: ContinuousClock.Instant {
        min(earliest(eventDue, pacedConfirmDue) ?? auditDue, auditDue)
    }

    /// Not before the events that wait are looked into, which are made to wait when they are too many.
    private var pacedConfirmDue: ContinuousClock.Instant? {
        confirmDue.map { max($0, eventDue ?? $0) }
    }

    /// Notes that something may have changed.
    mutating func noteEvents(isOverrun: Bool, now: ContinuousClock.Instant) {
        let deadline = confirmDeadline ?? now + confirmDelay * Self.longestConfirmFactor
        confirmDeadline = deadline
        confirmDue = min(now + confirmDelay, deadline)
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
        let isConfirmed = pacedConfirmDue.map { $0 <= now } ?? false
        let run: Run = isConfirmed || auditDue <= now ? .everything : .changed
        if !overrunSinceLastRun { overrunsInARow = 0 }
        overrunSinceLastRun = false
        // Making sure delays nothing: what is announced right after it is acted on at once.
        if eventDue != nil { lastRun = now }
        eventDue = nil
        if isConfirmed { (confirmDue, confirmDeadline) = (nil, nil) }
        auditDue = now + auditInterval
        return run
    }
}
