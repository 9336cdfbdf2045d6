internal import NetwatchEventLoop

/// The limit on the lookups per second of watched names. A pure value.
///
/// Implements the generic cell rate algorithm (ITU-T I.371). Lookups are spread evenly. After a pause, some may start at
/// once.
struct LookupBudget: Sendable {
    typealias Instant = BootInstant

    private let spacing: Duration
    private let tolerance: Duration
    /// The time of the next lookup if all lookups were evenly spaced, without bursts.
    private var next: Instant?

    /// - Parameters:
    ///   - spacing: The time between two lookups at the maximum rate.
    ///   - burst: The number of lookups that may start at once. Less than 1 counts as 1.
    init(spacing: Duration, burst: Int) {
        self.spacing = spacing
        tolerance = spacing * (max(1, burst) - 1)
    }

    /// Returns the time from which a lookup may start if the given number of lookups starts before it. The time may be
    /// in the past.
    func opening(after count: Int = 0, now: Instant) -> Instant {
        max(next ?? now, now) + spacing * count - tolerance
    }

    /// Counts a lookup that starts now.
    mutating func take(now: Instant) {
        next = max(next ?? now, now) + spacing
    }
}
