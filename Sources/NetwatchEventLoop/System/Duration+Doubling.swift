extension Duration {
    /// Returns this duration doubled `times` times, at most `limit`: a delay that grows with each failure.
    ///
    /// Negative `times` count as 0. Durations and limits up to `Int64.max` seconds do not overflow.
    package func doubled(times: Int, upTo limit: Duration) -> Duration {
        var delay = self
        for _ in 0..<max(times, 0) {
            guard delay > .zero, delay < limit else { break }
            delay += delay
        }
        return min(delay, limit)
    }
}
