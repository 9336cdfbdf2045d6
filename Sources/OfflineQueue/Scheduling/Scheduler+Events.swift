internal import NetwatchEventLoop

// Changes the scheduler's state for each event.

extension Scheduler {
    mutating func add(_ rows: LaneRows, now: Moment, _ actions: inout [Action]) {
        let id = rows.info.id
        guard lanes[id] != nil || create(rows, now: now) else { return }
        if let due = rows.due { lanes[id]!.rowsAreDue(at: due) }
        if rows.isRequested { lanes[id]!.isRequested = true }
        if let flushedAt = rows.flushedAt, lanes[id]!.createdAt >= flushedAt { force(id, now: now) }
        if !isMemoryContended { watchEarly(lanes[id]!, now: now, &actions) }
        schedule(id, now: now)
    }

    /// Creates a lane, if it may be in memory now.
    private mutating func create(_ rows: LaneRows, now: Moment) -> Bool {
        let id = rows.info.id
        let earlier = unloaded[id]
        guard mayCreate(rows, earlier, now: now) else {
            addUnloaded(rows, earlier, now: now)
            return false
        }
        lanes[id] = SchedulerLane(rows.info, now: now)
        slots.open(laneOf: rows.info.origin)
        addToGate(id, rows.info.origin.endpoint, earlier, now: now)
        if let earlier { restore(id, earlier, now: now) } else { memory.began(for: rows.info.key.submitter) }
        return true
    }

    /// Adds a lane to the gate of its endpoint. An endpoint that had no lanes yields its watch only after a while now.
    private mutating func addToGate(
        _ id: Int64,
        _ endpoint: Endpoint,
        _ earlier: UnloadedLane?,
        now: Moment
    ) {
        if gates[endpoint] == nil {
            gates[endpoint] = earlier.flatMap { gate(of: $0, now: now) } ?? Gate(since: now)
            endpoints[endpoint.host, default: []].append(endpoint)
        }
        gates[endpoint]!.lanes.insert(id)
        guard idleEndpoints.contains(endpoint) else { return }
        idleEndpoints.removeAll { $0 == endpoint }
        if let watch = gates[endpoint]!.watch {
            watches.use.setYield(endpoint, for: watch.submitter, from: nil)
        }
    }

    mutating func gateChanged(
        _ endpoint: Endpoint,
        _ state: GateState,
        now: Moment,
        _ actions: inout [Action]
    ) {
        guard let old = gates[endpoint], old.watch != nil, old.state != state else { return }
        guard old.earlier == nil else {
            return gateResumed(endpoint, state, after: old, now: now, &actions)
        }
        gates[endpoint]!.report(state)
        // The same outage has another reason now, for example a cable that was unplugged after the route was deleted.
        if old.state?.isDown == true, state.isDown { return }
        gates[endpoint]!.since = now
        gates[endpoint]!.portal.reset()
        let isChange = isChange(from: old, to: state)
        // The order must not depend on hash seeds, so that a run can be replayed.
        for id in old.lanes.sorted() {
            endFlush(id, after: old)
            guard case .reachable = state else { continue }
            if isChange || lanes[id]!.lastTry == nil { lanes[id]!.reset(releasing: [.trust], now: now) }
        }
        if isChange { reconnect(endpoint, old.state, state, now: now) }
        for id in old.lanes.sorted() { schedule(id, now: now) }
        switch state {
        case .down: startGrace(endpoint, now: now)
        // An unknown state does not prove that the path was lost.
        case .unknown:
            setLosses(of: endpoint, [])
            if old.state?.isDown == true { pathReturned(to: endpoint, now: now) }
        case .reachable(_, let route, _):
            if isChange, old.state == .unknown { pathReturned(to: endpoint, now: now) }
            pathFound(endpoint, route, after: old, now: now, &actions)
        }
        for id in old.lanes.sorted() { interruptIfUnmet(id, now: now, &actions) }
    }

    /// Returns whether a new state of a gate shows that the path has changed.
    ///
    /// If the state was unknown from the start, the path may always have existed: the address of a name is also found by
    /// the lookup of an attempt, before the server refuses the connection. The path is then news only if that lookup failed.
    private func isChange(from old: Gate, to new: GateState) -> Bool {
        guard case .reachable = new, old.state == .unknown, !old.isKnown else { return true }
        return old.lanes.contains { lanes[$0]!.isUnresolved }
    }

    /// Lets a lane respect its gate again, after a change of the gate. The first state of a watch is no change, and must not
    /// end a flush for which the watch began.
    mutating func endFlush(_ id: Int64, after old: Gate) {
        if old.state != nil || !lanes[id]!.isRequested { lanes[id]!.isForced = false }
    }

    mutating func claimed(_ id: Int64, taken: Int, due: Moment?, now: Moment) {
        guard let claiming = lanes[id]?.claiming else { return }
        let began = lanes[id]!.claimedAt
        lanes[id]!.claiming = nil
        claimReturned(id, slots: claiming, taken: taken, began: began, due: due, now: now)
    }

    mutating func nextClaimed(_ id: Int64, taken: Int, due: Moment?, now: Moment) {
        guard lanes[id] != nil else { return }
        lanes[id]!.nextClaims -= 1
        // Claims may return in a different order than they began. The earliest start is assumed, because it gives the
        // fewest turns back.
        let began = lanes[id]!.nextClaimedAt.removeFirst()
        claimReturned(id, slots: 1, taken: taken, began: began, due: due, now: now)
    }

    /// Handles the result of a claim: releases the slots for which the claim found no request.
    private mutating func claimReturned(
        _ id: Int64,
        slots count: Int,
        taken: Int,
        began: Moment,
        due: Moment?,
        now: Moment
    ) {
        lanes[id]!.inflight -= count - taken
        slots.release(count - taken, of: lanes[id]!.origin)
        slots.settleRate(unused: count - taken, of: count, taken: began, of: lanes[id]!.origin)
        lanes[id]!.requestsEnded()
        if taken > 0 {
            lanes[id]!.lastTry = now
            lanes[id]!.claimedAfterOpening(now: now)
        }
        lanes[id]!.claimReturned(due: due)
    }

    mutating func settled(_ id: Int64, due: Moment?, isDistrusted: Bool, now: Moment) {
        guard var lane = lanes[id] else { return }
        lane.inflight -= 1
        lane.requestsEnded()
        slots.release(1, of: lane.origin)
        // In a FIFO lane, the next request may start as soon as the previous outcome is stored.
        if let due = due ?? (lane.mode == .fifo ? now : nil) { lane.rowsAreDue(at: due) }
        // `distrustedUntil` is `nil` if the path changed, or the queue was flushed, after the attempt began. The server
        // may be trusted now, so the request is released immediately.
        if isDistrusted, lane.distrustedUntil == nil { lane.distrustedUntil = now }
        lanes[id] = lane
    }

    mutating func flush(_ selection: LaneSelection, now: Moment) {
        for endpoint in gates.keys where selection.includes(host: endpoint.host) {
            gates[endpoint]!.portal.reset()
        }
        slots.recent.forgetFailures { selection.includes(host: $0.host) }
        restartCredentials(now: now) { selection.includes(host: $0.origin.host) }
        // Also schedules the other lanes of these hosts, because they may have waited for a probe that was dropped.
        for id in lanes.keys.sorted() where selection.includes(host: lanes[id]!.origin.host) {
            if selection.includes(lanes[id]!.key) { force(id, now: now) }
            schedule(id, now: now)
        }
    }

    static let releasedByFlush: Set<HoldReason> = [.trust, .configuration, .auth]

    /// Ends everything that delays the requests of a lane, except their own times.
    mutating func force(_ id: Int64, now: Moment) {
        lanes[id]!.reset(releasing: Self.releasedByFlush, now: now)
        lanes[id]!.serverNotBefore = .zero
        lanes[id]!.isHeld = false
        lanes[id]!.isForced = true
        lanes[id]!.isRequested = true
        slots.leaveRamp(lanes[id]!.origin)
        slots.forgetFailures(of: lanes[id]!.origin)
    }

    /// Reschedules the lanes whose time in the timetable has come.
    mutating func wakeLanes(now: Moment) {
        while let id = timetable.removeFirst(until: now) {
            if let end = lanes[id]!.canary?.endsAt, end <= now { lanes[id]!.canary = nil }
            schedule(id, now: now)
        }
    }
}

// MARK: - Removal of lanes

extension Scheduler {
    /// Removes a lane that has no work left, and the gate of its endpoint if this was the endpoint's last lane.
    mutating func removeIfIdle(_ id: Int64, now: Moment, _ actions: inout [Action]) {
        guard let lane = lanes[id], lane.isIdle else { return schedule(id, now: now) }
        remove(lane, now: now, &actions)
    }

    mutating func remove(_ lane: SchedulerLane, now: Moment, _ actions: inout [Action]) {
        let id = lane.id
        lanes[id] = nil
        memory.ended(id, for: lane.key.submitter)
        if unloaded.isEmpty, lanes.count < settings.maximumLanes / 64 { isMemoryContended = false }
        timetable.set(id, to: nil)
        turns.remove(id)
        watches.remove(id)
        windowEnds.set(id, to: nil)
        heldTimes.set(.lane(id), to: nil)
        forgetUnanswered(lane)
        // Failures without a path say nothing about the server, and the return of an unwatched path is not noticed.
        if seemsDown(lane.endpoint) { slots.forgetFailures(of: lane.origin) }
        slots.close(id, of: lane.origin)
        gates[lane.endpoint]?.lanes.remove(id)
        if lane.usesWatch { gates[lane.endpoint]?.users -= 1 }
        guard gates[lane.endpoint]?.lanes.isEmpty == true else {
            return updateYield(lane.endpoint, now: now)
        }
        if let endpoint = idleEndpoint(lane.origin) { forget(endpoint, now: now, &actions) }
    }
}

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
