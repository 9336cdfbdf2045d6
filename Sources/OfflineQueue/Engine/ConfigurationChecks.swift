internal import ClientCore

extension OfflineQueue.Configuration {
    /// Checks the settings. Called before the queue touches its directory.
    ///
    /// Some invalid settings would prevent all sending, and others would crash the process at the first failure.
    ///
    /// - Throws: ``QueueError`` with `invalidConfiguration`. Its message names the setting and the accepted values.
    func check() throws(QueueError) {
        let longest = RequestChecks.longestTime
        try SettingCheck.require(backoffBase, "backoffBase", in: .milliseconds(1)...longest, \.words)
        // The line above ensures that `backoffBase` is at most `longest`. Otherwise this range would crash.
        try SettingCheck.require(backoffCap, "backoffCap", in: backoffBase...longest, \.words)
        try SettingCheck.require(reconnectSpread, "reconnectSpread", in: .zero...longest, \.words)
        try SettingCheck.require(stopTimeout, "stopTimeout", in: .zero...longest, \.words)
        try SettingCheck.require(scanInterval, "scanInterval", in: .zero...longest, \.words)
        let timeouts: ClosedRange<Duration> = .milliseconds(1)...(.seconds(3600))
        try SettingCheck.require(credentialTimeout, "credentialTimeout", in: timeouts, \.words)
        try SettingCheck.require(inflightPerLane, "inflightPerLane", in: Self.inflightRange, \.description)
        try SettingCheck.require(
            inflightPerOrigin,
            "inflightPerOrigin",
            in: Self.inflightRange,
            \.description
        )
        try SettingCheck.require(inflight, "inflight", in: Self.inflightRange, \.description)
        try limits.check()
        let hosts = Dictionary(grouping: rates) { $0.host?.lowercased() }
        for (host, limits) in hosts where limits.count > 1 {
            throw SettingCheck.refusal(
                "rates",
                "\(limits.count) limits for \(host.map(quoted) ?? "all hosts")",
                accepted: "one for each host and one for all"
            )
        }
        try checkHosts(hostWeights.keys, of: "hostWeights", each: "weight")
        try checkHosts(hostStatusRules.keys, of: "hostStatusRules", each: "set of rules")
        try check(statusRules, of: "statusRules")
        for (host, rules) in hostStatusRules { try check(rules, of: "hostStatusRules[\(quoted(host))]") }
        for (label, rules) in laneStatusRules { try check(rules, of: "laneStatusRules[\(quoted(label))]") }
        for (name, weights) in [("hostWeights", hostWeights), ("laneWeights", laneWeights)] {
            for (key, weight) in weights {
                try SettingCheck.require(weight, "\(name)[\(quoted(key))]", in: 1...100, \.description)
            }
        }
        for name in meteredInterfaces where !MeteredInterfaces.isValid(name) {
            throw SettingCheck.refusal(
                "meteredInterfaces",
                quoted(name),
                accepted: MeteredInterfaces.accepted
            )
        }
        _ = try portalProbe()
    }

    private func check(_ rules: StatusRules, of name: String) throws(QueueError) {
        do throws(QueueError) { try rules.check() } catch {
            throw QueueError(.invalidConfiguration, "`\(name)`: \(error.message)")
        }
    }

    /// Refuses keys that are not hosts, and two keys for the same host, such as `A.example` and `a.example`.
    private func checkHosts(
        _ keys: some Collection<String>,
        of name: String,
        each value: String
    ) throws(QueueError) {
        var known: [String: String] = [:]
        for key in keys.sorted() {
            guard let other = known.updateValue(key, forKey: try Origin.configuredHost(key)) else { continue }
            throw SettingCheck.refusal(
                name,
                "a dictionary with \(quoted(other)) and \(quoted(key))",
                accepted: "one with a single \(value) for each host"
            )
        }
    }

    /// Returns the probe for captive portals; `nil` if none is configured.
    ///
    /// - Throws: ``QueueError`` with `invalidConfiguration` for a URL that cannot be probed.
    func portalProbe() throws(QueueError) -> CaptivePortalProbe? {
        guard let captivePortalProbe else { return nil }
        do {
            return try .generate204(captivePortalProbe)
        } catch {
            throw QueueError(.invalidConfiguration, "`captivePortalProbe`: \(error)")
        }
    }

    /// The values that the settings for requests in flight accept. The upper bound is generous: each request needs a
    /// file descriptor for its connection, and a process has a limited number of them.
    package static let inflightRange = 1...65_536
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
