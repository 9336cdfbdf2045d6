internal import NetwatchEventLoop

/// Combines a burst of changes into one report. A pure value, without clock or timer.
struct Debounce: Sendable {
    /// The time without a change after which the report is due.
    let quietPeriod: Duration
    /// The maximum time from the first change to its report, however many changes follow.
    let maxDelay: Duration

    private var first: BootInstant?
    private var last: BootInstant?

    init(quietPeriod: Duration, maxDelay: Duration) {
        self.quietPeriod = quietPeriod
        self.maxDelay = maxDelay
    }

    /// The time when the report is due; `nil` if nothing has changed.
    var due: BootInstant? {
        guard let first, let last else { return nil }
        return min(last + quietPeriod, first + maxDelay)
    }

    mutating func note(at now: BootInstant) {
        first = first ?? now
        last = now
    }

    /// Returns whether the report is due, and resets the state if it is.
    mutating func takeDue(at now: BootInstant) -> Bool {
        guard let due, due <= now else { return false }
        (first, last) = (nil, nil)
        return true
    }
}
