/// The earliest of some moments, which may be none; asked for at every announcement of the kernel, so that no
/// array is made.
func earliest(
    _ first: ContinuousClock.Instant?,
    _ second: ContinuousClock.Instant?
) -> ContinuousClock.Instant? {
    guard let first, let second else { return first ?? second }
    return min(first, second)
}
