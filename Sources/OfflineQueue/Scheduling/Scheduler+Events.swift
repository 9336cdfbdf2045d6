// The state changes for each event.

extension Scheduler {
    mutating func add(_ info: LaneInfo, due: Moment, now: Moment, _ actions: inout [Action]) {
        let host = info.origin.host
        if lanes[info.id] == nil {
            lanes[info.id] = SchedulerLane(info)
            slots.open(laneOf: info.origin)
        }
        lanes[info.id]!.rowsAreDue(at: due)
        if gates[host] == nil {
            gates[host] = Gate(state: nil, since: now)
            actions.append(.watch(host))
        }
        gates[host]!.lanes.insert(info.id)
        schedule(info.id, now: now)
    }

    mutating func gateChanged(_ host: String, _ state: GateState, now: Moment, _ actions: inout [Action]) {
        guard let old = gates[host], old.state != state else { return }
        gates[host]!.state = state
        gates[host]!.since = now
        // Sorted, so that a run can be replayed.
        for id in old.lanes.sorted() {
            lanes[id]!.isForced = false
            if case .reachable = state { lanes[id]!.reset(releasing: [.trust], now: now) }
            schedule(id, now: now)
        }
        switch state {
        case .notReachable: startGrace(host, now: now)
        // An unknown state does not show that the path is lost.
        case .unknown: setLosses(of: host, [])
        case .reachable(_, let route): pathFound(host, route, after: old, now: now, &actions)
        }
    }

    mutating func claimed(_ id: Int64, taken: Int, due: Moment?, now: Moment) {
        guard let claiming = lanes[id]?.claiming else { return }
        lanes[id]!.claiming = nil
        claimReturned(id, slots: claiming, taken: taken, due: due, now: now)
    }

    mutating func nextClaimed(_ id: Int64, taken: Int, due: Moment?, now: Moment) {
        guard lanes[id] != nil else { return }
        lanes[id]!.nextClaims -= 1
        claimReturned(id, slots: 1, taken: taken, due: due, now: now)
    }

    /// Releases the slots for which a claim found no request.
    private mutating func claimReturned(_ id: Int64, slots count: Int, taken: Int, due: Moment?, now: Moment)
    {
        lanes[id]!.inflight -= count - taken
        slots.release(count - taken, of: lanes[id]!.origin)
        if taken > 0 { lanes[id]!.lastTry = now }
        lanes[id]!.claimReturned(due: due)
    }

    mutating func settled(_ id: Int64, due: Moment?, isDistrusted: Bool, now: Moment) {
        guard var lane = lanes[id] else { return }
        lane.inflight -= 1
        slots.release(1, of: lane.origin)
        // In a FIFO lane, the next request may start once the previous one is settled.
        if let due = due ?? (lane.mode == .fifo ? now : nil) { lane.rowsAreDue(at: due) }
        // The path changed during the attempt, and the server may be trusted on the new path.
        if isDistrusted, lane.distrustedUntil == nil { lane.distrustedUntil = now }
        lanes[id] = lane
    }

    mutating func flush(now: Moment) {
        for id in lanes.keys.sorted() {
            lanes[id]!.reset(releasing: [.trust, .configuration, .auth], now: now)
            lanes[id]!.serverNotBefore = .zero
            lanes[id]!.isHeld = false
            lanes[id]!.isForced = true
            schedule(id, now: now)
        }
    }

    /// Updates the lanes whose wake time has come.
    mutating func wakeLanes(now: Moment) {
        while let id = timetable.removeFirst(until: now) {
            releaseDistrusted(id, now: now)
            schedule(id, now: now)
        }
    }

    private mutating func releaseDistrusted(_ id: Int64, now: Moment) {
        guard let until = lanes[id]!.distrustedUntil, until <= now else { return }
        lanes[id]!.distrustedUntil = nil
        lanes[id]!.releasing = (lanes[id]!.releasing ?? []).union([.trust])
        lanes[id]!.rowsAreDue(at: now)
    }
}

// MARK: - Removal of lanes

extension Scheduler {
    /// Removes a lane that has nothing left to do, and the host's gate with the host's last lane.
    mutating func removeIfIdle(_ id: Int64, now: Moment, _ actions: inout [Action]) {
        guard let lane = lanes[id], lane.isIdle else { return schedule(id, now: now) }
        lanes[id] = nil
        timetable.set(id, to: nil)
        slots.close(id, of: lane.origin)
        gates[lane.host]?.lanes.remove(id)
        guard gates[lane.host]?.lanes.isEmpty == true else { return }
        gates[lane.host] = nil
        graces.set(lane.host, to: nil)
        actions.append(.unwatch(lane.host))
    }
}
