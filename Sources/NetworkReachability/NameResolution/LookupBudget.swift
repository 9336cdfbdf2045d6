/// Limits how many lookups per second refresh the addresses of watched names. A pure value.
///
/// Implements the generic cell rate algorithm (ITU-T I.371): lookups are spread evenly, with bursts of up to one
/// second's worth.
struct LookupBudget: Sendable {
    typealias Instant = ContinuousClock.Instant

    private let spacing: Duration
    private let burst: Duration
    /// When the next lookup would be due if lookups were evenly spaced.
    private var next: Instant?

    /// - Parameter perSecond: At least 1.
    init(perSecond: Int) {
        spacing = .seconds(1) / max(1, perSecond)
        burst = .seconds(1) - spacing
    }

    /// Reserves a lookup and returns the time when it may start, never before `now`.
    mutating func reserve(now: Instant) -> Instant {
        let due = max(next ?? now, now)
        next = due + spacing
        return max(now, due - burst)
    }
}
