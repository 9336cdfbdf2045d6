extension Duration {
    /// Returns this duration doubled `times` times, but at most `limit`. Used for delays that grow with each failure.
    ///
    /// A negative number of times has the effect of 0. Durations and limits of up to `Int64.max` seconds do not
    /// overflow.
    package func doubled(times: Int, upTo limit: Duration) -> Duration {
        var delay = self
        for _ in 0..<max(times, 0) {
            guard delay > .zero, delay < limit else { break }
            delay += delay
        }
        return min(delay, limit)
    }
}
