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
