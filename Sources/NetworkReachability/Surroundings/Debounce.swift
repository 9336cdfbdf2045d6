/// Makes one report of changes that come in bursts. A pure value.
struct Debounce: Sendable {
    /// How long nothing must have changed.
    let quiet: Duration
    /// How long a report may be put off by ever new changes.
    let longest: Duration

    private var first: ContinuousClock.Instant?
    private var last: ContinuousClock.Instant?

    init(quiet: Duration, longest: Duration) {
        self.quiet = quiet
        self.longest = longest
    }

    /// When the report is due; `nil` when there is nothing to report.
    var due: ContinuousClock.Instant? {
        guard let first, let last else { return nil }
        return min(last + quiet, first + longest)
    }

    mutating func note(at now: ContinuousClock.Instant) {
        first = first ?? now
        last = now
    }

    /// Whether to report now, which is then done with.
    mutating func takeDue(at now: ContinuousClock.Instant) -> Bool {
        guard let due, due <= now else { return false }
        (first, last) = (nil, nil)
        return true
    }
}
