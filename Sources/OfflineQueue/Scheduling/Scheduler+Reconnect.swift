// Limits what a queue sends when a host becomes reachable again, so that neither its requests nor those of other queues
// arrive all at once.

extension Scheduler {
    /// Handles a change of an endpoint's gate: after an outage, each lane sends a canary, and the origins of the
    /// endpoint join the ramp. The first state of a gate does not indicate an outage.
    mutating func reconnect(_ endpoint: Endpoint, _ old: GateState?, _ new: GateState, now: Moment) {
        guard old != nil else { return }
        switch (old, new) {
        // A name that could not be looked up during the outage is unknown until its lookup ends.
        case (_, .reachable), (.down?, .unknown):
            if case .down? = old { gates[endpoint]!.opensAt = drawSpread(now: now) }
            for id in gates[endpoint]!.lanes.sorted() { lanes[id]!.beginAfterOutage(now: now) }
            for origin in origins(of: endpoint) { slots.reconnected(origin, now: now) }
            // Hosts without lanes may not be watched, but they may have lost the same link.
            slots.recent.forgetFailures()
        case (_, .down): for origin in origins(of: endpoint) { slots.leaveRamp(origin) }
        case (_, .unknown): break
        }
    }

    /// Returns the time until which requests wait after an outage. Hosts that become reachable while requests wait get
    /// the same time, because one link may connect all of them.
    mutating func drawSpread(now: Moment) -> Moment {
        guard settings.reconnectSpread > .zero else { return .zero }
        if spreadEnd <= now { spreadEnd = now + random.uniform(.zero...settings.reconnectSpread) }
        return spreadEnd
    }

    /// Returns how many retries a claim may take; `nil` for no limit. The budget does not apply to the single request
    /// with which a lane finds out whether its server can be reached. A flush and a release permit one retry in any
    /// case.
    mutating func allowance(of lane: SchedulerLane, limit: Int, now: Moment) -> RetryAllowance? {
        guard lane.canary == nil, !isProbing(lane) else { return nil }
        return slots.reserveRetries(limit, atLeast: lane.isRequested ? 1 : 0, of: lane.origin, now: now)
    }

    mutating func record(_ use: RetryUse, ofLane id: Int64, now: Moment) {
        guard let lane = lanes[id] else { return }
        if let delay = use.postponement {
            lanes[id]!.retriesPostponedUntil = max(lane.retriesPostponedUntil, now + delay)
        }
        slots.record(use, of: lane.origin, now: now)
    }

    private func origins(of endpoint: Endpoint) -> [Origin] {
        origins(of: gates[endpoint]!.lanes.sorted())
    }

    /// Returns the origins of lanes, each once, in the order of the lanes, so that a run can be replayed.
    func origins(of ids: [Int64]) -> [Origin] {
        var known: Set<Origin> = []
        return ids.map { lanes[$0]!.origin }.filter { known.insert($0).inserted }
    }
}
