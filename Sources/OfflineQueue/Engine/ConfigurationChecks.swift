internal import ClientCore

extension OfflineQueue.Configuration {
    /// Checks the settings. Called before the queue touches its directory.
    ///
    /// Some invalid settings would prevent all sending, and others would crash the process at the first failure.
    ///
    /// - Throws: ``QueueError`` with `invalidConfiguration`. Its message names the setting and the accepted values.
    func check() throws(QueueError) {
        try SettingCheck.require(backoffBase, "backoffBase", in: Accepted.backoff, \.words)
        // The line above ensures that `backoffBase` is not above the upper bound. Otherwise this range would crash.
        let caps = backoffBase...Accepted.backoff.upperBound
        try SettingCheck.require(backoffCap, "backoffCap", in: caps, \.words)
        try SettingCheck.require(reconnectSpread, "reconnectSpread", in: Accepted.reconnectSpread, \.words)
        try SettingCheck.require(stopTimeout, "stopTimeout", in: Accepted.stopTimeout, \.words)
        try SettingCheck.require(scanInterval, "scanInterval", in: Accepted.scanInterval, \.words)
        try SettingCheck.require(
            credentialTimeout,
            "credentialTimeout",
            in: Accepted.credentialTimeout,
            \.words
        )
        for (name, number) in [
            ("inflightPerLane", inflightPerLane), ("inflightPerOrigin", inflightPerOrigin),
            ("inflight", inflight),
        ] {
            try SettingCheck.require(number, name, in: Accepted.inflight, \.description)
        }
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
                let setting = "\(name)[\(quoted(key))]"
                try SettingCheck.require(weight, setting, in: Accepted.weights, \.description)
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

    /// The values that the settings accept. The configuration file and the options of the service accept the same.
    package enum Accepted {
        /// ``backoffBase`` and ``backoffCap``, which is not less than ``backoffBase``.
        package static let backoff: ClosedRange<Duration> = .milliseconds(1)...RequestChecks.longestTime
        package static let reconnectSpread: ClosedRange<Duration> = .zero...RequestChecks.longestTime
        package static let scanInterval: ClosedRange<Duration> = .zero...RequestChecks.longestTime
        /// By default, systemd kills a service 90 s after the beginning of its stop.
        package static let stopTimeout: ClosedRange<Duration> = .zero...(.seconds(60))
        package static let credentialTimeout: ClosedRange<Duration> = .milliseconds(1)...(.seconds(3600))
        /// The settings for requests in flight. The upper bound is generous: each request needs a file descriptor for
        /// its connection, and a process has a limited number of them.
        package static let inflight = 1...65_536
        /// The weights of hosts and of lanes.
        package static let weights = 1...100
    }
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
