extension Duration {
    /// Returns this duration with a random variation, rounded to milliseconds.
    ///
    /// - Parameters:
    ///   - part: The maximum variation as a part of this duration. With 0.1 the result is 90 to 110 percent.
    ///   - random: A random number from 0 (shortest result) to 1 (longest). With 0.5 the duration does not vary.
    func jittered(by part: Double, _ random: Double) -> Duration {
        .milliseconds((self / .milliseconds(1) * (1 + part * (2 * random - 1))).rounded())
    }

    /// Returns this duration, or the nearest bound if it is outside the range.
    package func clamped(to range: ClosedRange<Duration>) -> Duration {
        min(max(self, range.lowerBound), range.upperBound)
    }
}
