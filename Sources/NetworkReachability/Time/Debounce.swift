/// Combines bursts of changes into one report. A pure value.
struct Debounce: Sendable {
    /// How long there must be no changes before the report.
    let quietPeriod: Duration
    /// The maximum time by which further changes can delay a report.
    let maxDelay: Duration

    private var first: ContinuousClock.Instant?
    private var last: ContinuousClock.Instant?

    init(quietPeriod: Duration, maxDelay: Duration) {
        self.quietPeriod = quietPeriod
        self.maxDelay = maxDelay
    }

    /// When the report is due; `nil` if there is nothing to report.
    var due: ContinuousClock.Instant? {
        guard let first, let last else { return nil }
        return min(last + quietPeriod, first + maxDelay)
    }

    mutating func note(at now: ContinuousClock.Instant) {
        first = first ?? now
        last = now
    }

    /// Returns whether the report is due, and resets the state if it is.
    mutating func takeDue(at now: ContinuousClock.Instant) -> Bool {
        guard let due, due <= now else { return false }
        (first, last) = (nil, nil)
        return true
    }
}
