internal import ClientCore
internal import NetwatchEventLoop

/// The settings of the parts of a queue.
extension OfflineQueue {
    /// Replaces the settings of an open queue that can change: its limits, its retention, the backoff, the numbers of
    /// requests in flight, ``Configuration/reconnectSpread``, the rates, the weights, the versions of HTTP, the rules for
    /// statuses, ``Configuration/credentialTimeout``, ``Configuration/stopTimeout`` and ``Configuration/scanInterval``.
    /// The other settings are ignored.
    ///
    /// Stored requests and requests in flight remain, even if they exceed the new limits. New requests start when fewer
    /// than the new numbers are in flight. The backoff and the spread apply to the next delay. A rate permits as many
    /// requests at once as before, but at most its new burst.
    ///
    /// - Precondition: The settings are in the ranges that ``Configuration`` and ``QueueLimits`` state.
    package func use(_ new: Configuration) async {
        configuration.replaceSettings(with: new.withOriginHosts)
        handle(.settings(Scheduler.Settings(configuration, checksPortals: portals != nil)))
        await store.use(StoreSettings(configuration))
        capacityWaiters.changed()
        sweeper.shortenPause(to: .zero)
        scanner.use(interval: configuration.scanInterval)
        await credentials.use(
            timeout: configuration.credentialTimeout,
            maximumWait: configuration.credentialWait
        )
    }
}

extension OfflineQueue.Configuration {
    /// Returns the version of HTTP that is configured for the origin of a URL; `nil` if there is none.
    func httpVersion(of url: String) -> HTTPVersion? {
        guard !httpVersions.isEmpty, let origin = try? Origin(url: url) else { return nil }
        return httpVersions[origin]
    }

    /// Returns the rules for the statuses of a response, those that take precedence first: of the request, its lane, its
    /// host, and the queue.
    ///
    /// - Parameter label: The label of the lane; `nil` if it is not known.
    func rules(besides request: StatusRules, for origin: Origin, lane label: String?) -> [StatusRules] {
        let rules = [
            request, label.flatMap { laneStatusRules[$0] }, hostStatusRules[origin.host], statusRules,
        ]
        return rules.compactMap { $0?.isEmpty == false ? $0 : nil }
    }

    /// The configuration with the hosts of ``hostStatusRules`` in the form of `Origin.host`.
    var withOriginHosts: OfflineQueue.Configuration {
        var configuration = self
        let hosts = hostStatusRules.map { (Origin.host(named: $0.key) ?? $0.key, $0.value) }
        // The check of the configuration has refused equal hosts.
        configuration.hostStatusRules = Dictionary(hosts) { first, _ in first }
        return configuration
    }

    /// Replaces the settings that can change while the queue is open.
    fileprivate mutating func replaceSettings(with new: OfflineQueue.Configuration) {
        (limits, retention) = (new.limits, new.retention)
        (backoffBase, backoffCap) = (new.backoffBase, new.backoffCap)
        (inflightPerLane, inflightPerOrigin) = (new.inflightPerLane, new.inflightPerOrigin)
        inflight = new.inflight
        reconnectSpread = new.reconnectSpread
        rates = new.rates
        (hostWeights, laneWeights) = (new.hostWeights, new.laneWeights)
        httpVersions = new.httpVersions
        (statusRules, hostStatusRules) = (new.statusRules, new.hostStatusRules)
        laneStatusRules = new.laneStatusRules
        (credentialTimeout, stopTimeout) = (new.credentialTimeout, new.stopTimeout)
        scanInterval = new.scanInterval
    }
}

extension StoreSettings {
    package init(_ configuration: OfflineQueue.Configuration) {
        self.init()
        limits = configuration.limits
        longestDelay = configuration.backoffCap
        retention = configuration.retention
        encryptionKeyFile = configuration.encryptionKeyFile
    }
}

extension Scheduler.Settings {
    init(_ configuration: OfflineQueue.Configuration, checksPortals: Bool) {
        self.init()
        backoff = Backoff(base: configuration.backoffBase, cap: configuration.backoffCap)
        inflightPerLane = configuration.inflightPerLane
        inflightPerOrigin = configuration.inflightPerOrigin
        inflight = configuration.inflight
        reconnectSpread = configuration.reconnectSpread
        retryRate = configuration.retryRate
        confirmsRefusals = configuration.confirmsRefusals
        authRetries = configuration.authRetries
        gateTimeout = configuration.gateTimeout
        lossGrace = configuration.lossGrace
        rates = configuration.rates
        let weights = configuration.hostWeights.map { (Origin.host(named: $0.key) ?? $0.key, $0.value) }
        // The check of the configuration has refused equal hosts.
        hostWeights = Dictionary(weights) { first, _ in first }
        laneWeights = configuration.laneWeights
        self.checksPortals = checksPortals
    }
}

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
