internal import NetwatchEventLoop

/// The limit on the lookups per second that refresh the addresses of watched names. A pure value.
///
/// Implements the generic cell rate algorithm (ITU-T I.371). Lookups are spread evenly. After a pause, the lookups of
/// one second may start at once.
struct LookupBudget: Sendable {
    typealias Instant = BootInstant

    private let spacing: Duration
    private let burst: Duration
    /// The time of the next lookup if all lookups were evenly spaced, without bursts.
    private var next: Instant?

    /// - Parameter perSecond: The maximum number of lookups per second. Less than 1 counts as 1.
    init(perSecond: Int) {
        spacing = .seconds(1) / max(1, perSecond)
        burst = .seconds(1) - spacing
    }

    /// Reserves a lookup. Returns the time when it may start, which is `now` or later.
    mutating func reserve(now: Instant) -> Instant {
        let due = max(next ?? now, now)
        next = due + spacing
        return max(now, due - burst)
    }
}
