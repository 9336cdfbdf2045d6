/// The settings of the parts of a queue.
extension OfflineQueue {
    /// Replaces the limits of the queue, except ``QueueLimits/diskReserve``, and how long finished requests are kept. Stored
    /// requests remain, even if they exceed the new limits.
    ///
    /// - Precondition: The limits are in the ranges that ``QueueLimits`` states.
    package nonisolated func use(_ limits: QueueLimits, _ retention: StoreSettings.Retention) {
        store.use(limits, retention)
        capacityWaiters.changed()
        sweeper.shortenPause(to: .zero)
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
