/// Returns the earlier of two optional instants. Used instead of an array, because it runs for every kernel
/// notification.
func earliest(
    _ first: ContinuousClock.Instant?,
    _ second: ContinuousClock.Instant?
) -> ContinuousClock.Instant? {
    guard let first, let second else { return first ?? second }
    return min(first, second)
}
