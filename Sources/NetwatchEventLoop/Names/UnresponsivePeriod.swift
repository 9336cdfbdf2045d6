/// The period during which no name server has answered promptly. A value without I/O.
struct UnresponsivePeriod: Hashable, Sendable {
    /// The start of the period: the end of the first slow lookup after the last prompt answer. `nil` outside such a
    /// period.
    private(set) var since: BootInstant?

    /// Records the end of a lookup. A slow lookup begins the period, and a prompt answer ends it.
    ///
    /// - Parameters:
    ///   - isSlow: Whether the lookup was slow (``ResolverTimes/slowLookup``).
    ///   - isAnswered: Whether a name server answered. A lookup that failed immediately, for example without a route,
    ///     has no effect.
    mutating func record(isSlow: Bool, isAnswered: Bool, now: BootInstant) {
        if isSlow { since = since ?? now } else if isAnswered { since = nil }
    }
}
