extension Duration {
    var inSeconds: Double { self / .seconds(1) }

    /// Converts Foundation's seconds. NaN and values below zero become zero. The maximum is `Int32.max`
    /// seconds.
    init(seconds: Double) {
        let longest = Double(Int32.max)
        self = seconds > 0 ? .seconds(min(seconds, longest)) : .zero
    }
}
