/// Since when no name server has answered promptly. A pure value.
struct SilenceRecord: Hashable, Sendable {
    /// When the first lookup ended in silence after which none was answered promptly.
    private(set) var since: ContinuousClock.Instant?

    mutating func note(isSilent: Bool, now: ContinuousClock.Instant) {
        since = isSilent ? since ?? now : nil
    }
}
