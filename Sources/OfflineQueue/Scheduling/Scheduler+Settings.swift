// Replaces the settings while requests wait and are in flight.

extension Scheduler {
    /// Replaces the settings and schedules all lanes again. Only the settings that ``OfflineQueue/use(_:)`` replaces
    /// may differ.
    mutating func use(_ settings: Settings, now: Moment) {
        self.settings = settings
        slots.use(OriginSlots.Limits(settings))
        // The order must not depend on hash seeds, so that a run can be replayed.
        for id in lanes.keys.sorted() { schedule(id, now: now) }
    }
}

extension OriginSlots.Limits {
    init(_ settings: Scheduler.Settings) {
        self.init(
            total: settings.inflight,
            perOrigin: settings.inflightPerOrigin,
            reserved: settings.reserved,
            rampStart: settings.rampStart,
            rampDuration: settings.rampDuration,
            windowDecrease: settings.windowDecrease,
            retries: RetryBudget.Limits(share: settings.retryShare, rate: settings.retryRate),
            rates: settings.rates,
            hostWeights: settings.hostWeights
        )
    }
}
