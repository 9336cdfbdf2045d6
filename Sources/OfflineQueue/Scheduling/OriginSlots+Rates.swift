// Keeps origins out of the lines while a rate limit permits no request to them.

extension OriginSlots {
    /// Sets the time, and puts the origins whose rate limits permit a request back into their lines.
    mutating func advance(to now: Moment) {
        self.now = max(self.now, now)
        while let host = openings.removeFirst(until: now) {
            for origin in throttled.removeValue(forKey: host) ?? [] { updateTurn(origin) }
        }
    }

    /// The time at which a waiting lane may get a slot because a rate limit then permits it; `nil` if no lane waits for
    /// that.
    var rateOpening: Moment? {
        let isAwaited = lines.contains { !$0.isEmpty }
        let all = isAwaited ? rates.opensAt.flatMap { $0 > now ? $0 : nil } : nil
        let host = openings.first.map { max($0, rates.opensAt ?? $0) }
        return [all, host].compactMap(\.self).min()
    }

    /// Returns whether a rate limit permits no request to an origin now.
    func isThrottled(_ origin: Origin) -> Bool {
        [rates.opensAt, rates.opensAt(origin.host)].contains { $0.map { $0 > now } ?? false }
    }

    /// Records a request that takes over the slot of a finished one.
    mutating func tookOver(_ origin: Origin) {
        rates.take(of: origin.host, now: now)
    }

    /// Records how many slots of a claim found no request, and gives their share of the rate back.
    ///
    /// - Parameter taken: The time of ``now`` when the claim got its slots.
    mutating func settleRate(unused: Int, of count: Int, taken: Moment, of origin: Origin) {
        rates.settle(unused: unused, of: count, to: origin.host, taken: taken)
        if unused > 0, throttled[origin.host] != nil {
            openings.set(origin.host, to: rates.opensAt(origin.host))
        }
    }

    /// Keeps an origin with waiting lanes out of the lines while the rate limit of its host permits no request. Returns
    /// whether it does.
    mutating func throttle(_ origin: Origin) -> Bool {
        guard let opening = rates.opensAt(origin.host), opening > now else { return false }
        guard line(for: origin) != nil else { return true }
        if throttled[origin.host]?.contains(origin) != true {
            throttled[origin.host, default: []].append(origin)
        }
        openings.set(origin.host, to: opening)
        return true
    }
}
