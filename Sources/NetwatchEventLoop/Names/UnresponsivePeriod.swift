/// The time since which no name server has answered promptly. A pure value.
struct UnresponsivePeriod: Hashable, Sendable {
    /// The end of the first slow lookup since the last prompt answer.
    private(set) var since: ContinuousClock.Instant?

    /// - Parameter isAnswered: Whether a name server answered. A lookup that failed immediately because there is no
    ///   route has no effect.
    mutating func record(isSlow: Bool, isAnswered: Bool, now: ContinuousClock.Instant) {
        if isSlow { since = since ?? now } else if isAnswered { since = nil }
    }
}
