extension Duration {
    /// Returns this duration varied by at most `part` of itself in either direction, in whole milliseconds.
    ///
    /// - Parameter random: A random number from 0 to 1. 0.5 leaves the duration unchanged.
    func jittered(by part: Double, _ random: Double) -> Duration {
        .milliseconds((self / .milliseconds(1) * (1 + part * (2 * random - 1))).rounded())
    }

    /// Returns the nearest duration within the range.
    package func clamped(to range: ClosedRange<Duration>) -> Duration {
        min(max(self, range.lowerBound), range.upperBound)
    }
}
