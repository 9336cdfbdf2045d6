extension OfflineQueue.Configuration {
    /// Refuses invalid settings before the directory is touched. Some of them would prevent all sending, and others
    /// would crash the process at the first failure.
    ///
    /// - Throws: ``QueueError`` with `invalidConfiguration`, which names the setting and the accepted values.
    func check() throws(QueueError) {
        let longest = RequestChecks.longestTime
        try SettingCheck.require(backoffBase, "backoffBase", in: .milliseconds(1)...longest, \.words)
        // The check above ensures that `backoffBase` is at most `longest`, so the range is valid.
        try SettingCheck.require(backoffCap, "backoffCap", in: backoffBase...longest, \.words)
        try SettingCheck.require(stopTimeout, "stopTimeout", in: .zero...longest, \.words)
        try SettingCheck.require(inflightPerLane, "inflightPerLane", in: Self.inflightRange, \.description)
        try SettingCheck.require(
            inflightPerOrigin,
            "inflightPerOrigin",
            in: Self.inflightRange,
            \.description
        )
        try SettingCheck.require(inflight, "inflight", in: Self.inflightRange, \.description)
        try limits.check()
    }

    /// A process cannot have more connections than file descriptors.
    private static let inflightRange = 1...65_536
}

extension QueueLimits {
    fileprivate func check() throws(QueueError) {
        try SettingCheck.require(requests, "limits.requests", atLeast: 1)
        try SettingCheck.require(bytes, "limits.bytes", atLeast: 1)
        try SettingCheck.require(diskReserve, "limits.diskReserve", atLeast: 0)
        guard laneShare > 0, laneShare <= 1 else {
            throw SettingCheck.refusal(
                "limits.laneShare",
                "\(laneShare)",
                accepted: "more than 0 and at most 1"
            )
        }
    }
}

private enum SettingCheck {
    static func require<Value: Comparable>(
        _ value: Value,
        _ name: String,
        in range: ClosedRange<Value>,
        _ words: (Value) -> String
    ) throws(QueueError) {
        guard !range.contains(value) else { return }
        let accepted = "\(words(range.lowerBound)) to \(words(range.upperBound))"
        throw refusal(name, words(value), accepted: accepted)
    }

    static func require<Number: BinaryInteger>(
        _ value: Number,
        _ name: String,
        atLeast least: Number
    ) throws(QueueError) {
        guard value < least else { return }
        throw refusal(name, "\(value)", accepted: "\(least) or more")
    }

    static func refusal(_ name: String, _ value: String, accepted: String) -> QueueError {
        QueueError(.invalidConfiguration, "`\(name)` is \(value); it must be \(accepted)")
    }
}
