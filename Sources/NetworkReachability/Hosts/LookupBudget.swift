/// How many lookups a second may be spent on renewing what is known of watched names. A pure value.
///
/// The generic cell rate algorithm (ITU-T I.371): lookups are spread evenly, and a second's worth may come at once.
struct LookupBudget: Sendable {
    typealias Instant = ContinuousClock.Instant

    private let spacing: Duration
    private let burst: Duration
    /// When the next lookup is due if all come evenly.
    private var next: Instant?

    /// - Parameter perSecond: At least 1.
    init(perSecond: Int) {
        spacing = .seconds(1) / max(1, perSecond)
        burst = .seconds(1) - spacing
    }

    /// Reserves a lookup. Returns when it may start, which is not before `now`.
    mutating func reserve(now: Instant) -> Instant {
        let due = max(next ?? now, now)
        next = due + spacing
        return max(now, due - burst)
    }
}
