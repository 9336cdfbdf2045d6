extension Duration {
    var inSeconds: Double { self / .seconds(1) }

    /// Converts a number of seconds, such as a `TimeInterval` of Foundation. NaN and values below zero become zero. The
    /// result is at most `Int32.max` seconds.
    init(seconds: Double) {
        let longest = Double(Int32.max)
        self = seconds > 0 ? .seconds(min(seconds, longest)) : .zero
    }
}
