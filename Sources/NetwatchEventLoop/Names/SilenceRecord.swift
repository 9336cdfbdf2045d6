/// Since when no name server has answered promptly. A pure value.
struct SilenceRecord: Hashable, Sendable {
    /// When the first lookup ended in silence after which none was answered promptly.
    private(set) var since: ContinuousClock.Instant?

    /// - Parameter isAnswered: Whether a name server answered. A lookup that failed at once, for want of a route, says
    ///   nothing.
    mutating func note(isSilent: Bool, isAnswered: Bool, now: ContinuousClock.Instant) {
        if isSilent { since = since ?? now } else if isAnswered { since = nil }
    }
}
