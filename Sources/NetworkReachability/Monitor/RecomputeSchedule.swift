internal import NetwatchEventLoop

/// Decides when addresses are looked up again (a recomputation). A pure value.
///
/// - **Event**: the first event after a quiet period causes an immediate lookup of the marked addresses. If more events
///   arrive, further lookups follow after 1, 2, 4 and 8 ms, and then every ``spacing``. The first intervals are short
///   because the kernel announces a new link in several messages, and a lookup finds the route only after the last one.
///   If events overrun the receive buffer, lookups are less frequent, down to one per second.
/// - **Confirmation**: all addresses are looked up when no event has arrived for the confirm delay, because the kernel
///   announces some changes before it makes them. While events keep arriving, the confirmation runs after at most ten
///   times the confirm delay.
/// - **Audit**: all addresses are looked up when there was no event for a long interval, because the kernel makes some
///   changes without a notification. An event postpones the audit, because its confirmation looks up all addresses, too.
struct RecomputeSchedule: Sendable {
    /// The minimum time between the first two recomputations that events cause in a storm: 1 ms. It doubles with each
    /// further recomputation.
    static let initialSpacing: Duration = .milliseconds(1)
    /// The value at which this minimum time stops doubling: 10 ms.
    static let spacing: Duration = .milliseconds(10)
    /// An event begins a new storm if no event has caused a recomputation for this time: 100 ms. Events that follow
    /// sooner belong to the previous storm, so they cause few additional lookups.
    static let quietPeriod: Duration = .milliseconds(100)
    /// The minimum time between two recomputations after the second overrun in a row: 50 ms. It doubles with each
    /// further overrun.
    static let initialOverrunSpacing: Duration = .milliseconds(50)
    /// The value at which this minimum time stops doubling: 1 s, as in NetworkManager.
    static let maxOverrunSpacing: Duration = .seconds(1)

    /// The maximum delay of a confirmation while events keep arriving, as a multiple of the confirm delay: 10.
    static let maxConfirmFactor = 10

    private let confirmDelay: Duration
    private let auditInterval: Duration

    private var lastRun: BootInstant?
    /// The number of recomputations that events have caused since the storm began.
    private var runsInStorm = 0
    private var consecutiveOverruns = 0
    private var overrunSinceLastRun = false
    private var eventDue: BootInstant?
    private var confirmDue: BootInstant?
    private var confirmDeadline: BootInstant?
    private var auditDue: BootInstant

    init(confirmDelay: Duration, auditInterval: Duration, now: BootInstant) {
        self.confirmDelay = confirmDelay
        self.auditInterval = auditInterval
        auditDue = now + auditInterval
    }

    /// The next time at which ``takeDue(now:)`` must be called.
    var nextDue: BootInstant {
        min(earliest(eventDue, pacedConfirmDue) ?? auditDue, auditDue)
    }

    /// The time when the confirmation is due; `nil` if none is pending.
    ///
    /// It is not earlier than the recomputation for pending events, so that overruns delay the confirmation, too.
    private var pacedConfirmDue: BootInstant? {
        confirmDue.map { max($0, eventDue ?? $0) }
    }

    /// Records that events have arrived.
    ///
    /// - Parameter isOverrun: Whether the receive buffer has overrun, so that events were lost.
    mutating func noteEvents(isOverrun: Bool, now: BootInstant) {
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
        // The first overrun is handled like any event. The second one in a row causes the initial delay, which doubles
        // with each further one.
        guard consecutiveOverruns > 1 else {
            return Self.initialSpacing.doubled(times: runsInStorm - 1, upTo: Self.spacing)
        }
        return Self.initialOverrunSpacing.doubled(
            times: consecutiveOverruns - 2,
            upTo: Self.maxOverrunSpacing
        )
    }

    /// The scope of a recomputation.
    enum Run: Hashable, Sendable {
        /// The addresses that events since the last recomputation may affect.
        case changed
        /// All addresses.
        case everything
        /// All addresses, although no event has arrived since they were last looked up.
        case audit
        /// The addresses whose route may change without an event; see ``RouteLifetimes``, which schedules this.
        case renewable
    }

    /// Returns the recomputation that the caller must perform now; `nil` if none is due. Records it as done.
    mutating func takeDue(now: BootInstant) -> Run? {
        guard nextDue <= now else { return nil }
        let isConfirmed = pacedConfirmDue.map { $0 <= now } ?? false
        let run: Run = isConfirmed ? .everything : auditDue <= now ? .audit : .changed
        if !overrunSinceLastRun { consecutiveOverruns = 0 }
        overrunSinceLastRun = false
        // A recomputation without events does not count for the spacing, so that the next event is handled immediately.
        if eventDue != nil { noteRun(now) }
        eventDue = nil
        if isConfirmed { (confirmDue, confirmDeadline) = (nil, nil) }
        auditDue = now + auditInterval
        return run
    }

    private mutating func noteRun(_ now: BootInstant) {
        if let lastRun, now >= lastRun + Self.quietPeriod { runsInStorm = 0 }
        runsInStorm += 1
        lastRun = now
    }
}
