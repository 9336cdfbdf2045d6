extension Duration {
    /// This duration, or up to that part of it more or less, in whole milliseconds.
    ///
    /// - Parameter random: A number from 0 to 1.
    func jittered(by part: Double, _ random: Double) -> Duration {
        .milliseconds((self / .milliseconds(1) * (1 + part * (2 * random - 1))).rounded())
    }
}
