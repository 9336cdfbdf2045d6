internal import NetwatchEventLoop

// Watches the endpoints of lanes that can send, up to a maximum number. The other endpoints take turns.

extension Scheduler {
    func isWatched(_ endpoint: Endpoint) -> Bool { gates[endpoint]?.watch != nil }

    /// Whether there is no path to an endpoint, according to its watch or, while it has reported nothing, to the one
    /// before.
    func seemsDown(_ endpoint: Endpoint) -> Bool { gates[endpoint]?.downReason != nil }

    /// Watches the endpoint of a new lane before its time comes, so that the lane can be tried as soon as the path to its
    /// host returns.
    mutating func watchEarly(_ lane: SchedulerLane, now: Moment, _ actions: inout [Action]) {
        guard !isStopped, !isWatched(lane.endpoint), watches.isEmpty,
            watches.hasRoom(for: lane.key.submitter)
        else { return }
        watch(lane, now: now, &actions)
    }

    /// Lets lanes take turns and watches until none can. A lane with its turn may wait for a watch, and the reverse.
    mutating func giveTurnsAndWatches(now: Moment, _ actions: inout [Action]) {
        guard !isStopped else { return }
        repeat {
            giveTurns(now: now)
            giveWatches(now: now, &actions)
        } while turns.opensAt.map { $0 <= now } ?? false
    }

    /// The next time at which a lane may get the watch of an endpoint that does not use it; `nil` if there is none, or if
    /// the lane may get it at the next event.
    func nextWatch(now: Moment) -> Moment? { watches.nextYield.flatMap { $0 > now ? $0 : nil } }

    private mutating func giveWatches(now: Moment, _ actions: inout [Action]) {
        while let (id, yielding) = watches.takeNext(now: now) {
            if let yielding { endUnused(yielding, now: now, &actions) }
            watch(lanes[id]!, now: now, &actions)
            for id in gates[lanes[id]!.endpoint]!.lanes.sorted() { schedule(id, now: now) }
        }
    }

    private mutating func watch(_ lane: SchedulerLane, now: Moment, _ actions: inout [Action]) {
        let submitter = lane.key.submitter
        gates[lane.endpoint]!.watch = Watch(since: now, submitter: submitter)
        watches.use.began(for: submitter)
        updateYield(lane.endpoint, now: now)
        actions.append(.watch(lane.endpoint))
    }

    /// Ends the watch of an endpoint that is not in use, because another one needs it.
    private mutating func endUnused(_ endpoint: Endpoint, now: Moment, _ actions: inout [Action]) {
        guard !gates[endpoint]!.lanes.isEmpty else { return forget(endpoint, now: now, &actions) }
        unwatch(endpoint, now: now, &actions)
        for id in gates[endpoint]!.lanes.sorted() { schedule(id, now: now) }
    }

    /// Ends the watch of an endpoint, and forgets what only holds while the path is watched.
    private mutating func unwatch(_ endpoint: Endpoint, now: Moment, _ actions: inout [Action]) {
        guard let watch = gates[endpoint]!.watch else { return }
        gates[endpoint]!.endWatch(now: now)
        setLosses(of: endpoint, [])
        watches.use.ended(endpoint, for: watch.submitter)
        actions.append(.unwatch(endpoint))
    }

    /// Removes the gate of an endpoint without lanes.
    mutating func forget(_ endpoint: Endpoint, now: Moment, _ actions: inout [Action]) {
        unwatch(endpoint, now: now, &actions)
        gates[endpoint] = nil
        endpoints[endpoint.host]?.removeAll { $0 == endpoint }
        if endpoints[endpoint.host]?.isEmpty == true { endpoints[endpoint.host] = nil }
        idleEndpoints.removeAll { $0 == endpoint }
    }
}

// MARK: - Use of watches

extension Scheduler {
    /// Records whether a lane uses the watch of its endpoint. Must be called after every change of the lane.
    mutating func updateUse(_ id: Int64, now: Moment) {
        let lane = lanes[id]!
        let usesWatch = lane.inflight > 0 || slots.isWaiting(id, of: lane.origin)
        if usesWatch != lane.usesWatch {
            lanes[id]!.usesWatch = usesWatch
            gates[lane.endpoint]!.users += usesWatch ? 1 : -1
        }
        updateYield(lane.endpoint, now: now)
        updateUnloading(id, now: now)
    }

    /// Sets when the watch of an endpoint with lanes may yield. A running portal probe uses the watch, too. Otherwise its
    /// result would be lost again and again.
    mutating func updateYield(_ endpoint: Endpoint, now: Moment) {
        guard let gate = gates[endpoint], let watch = gate.watch else { return }
        let submitter = watch.submitter
        if gate.users > 0 || gate.portal.running != nil {
            watches.use.setYield(endpoint, for: submitter, from: nil)
        } else if !watches.use.mayYield(endpoint, for: submitter) {
            watches.use.setYield(endpoint, for: submitter, from: now + settings.watchIdleTime)
        }
    }

    /// Lets the watch of an endpoint without lanes yield before those of all endpoints with lanes.
    mutating func yieldFirst(_ endpoint: Endpoint) {
        guard let watch = gates[endpoint]?.watch else { return }
        watches.use.setYield(endpoint, for: watch.submitter, from: .zero)
    }
}

// MARK: - Lanes of endpoints that are not watched

extension Scheduler {
    /// Makes a lane of an endpoint that is not watched wait for a watch when its own time has come.
    ///
    /// If its host did not answer, the lane waits for its turn first. While there was no path at the last look, it waits
    /// for both: a watch may show that the path has returned, and then the lane needs no turn. The lane keeps its place in
    /// the line for a turn while its watch ends and begins.
    mutating func scheduleUnwatched(_ lane: SchedulerLane, _ constraints: ConstraintState, now: Moment) {
        slots.leave(lane.id, of: lane.origin)
        if case .unmet(.window, let until) = constraints { return awaitTime(lane, until) }
        guard let due = lane.due, let opening = ownOpening(of: lane) else { return awaitTime(lane, nil) }
        guard max(due, opening) <= now else { return awaitTime(lane, max(due, opening)) }
        let (mayTry, needsTurn) = (mayTry(lane, now: now), needsTurn(lane))
        if mayTry, needsTurn { turns.add(lane.id, to: turnGroup(of: lane)) } else { turns.remove(lane.id) }
        let needsWatchFrom = !needsTurn || seemsDown(lane.endpoint) ? needsWatchFrom(lane) : .never
        if needsWatchFrom <= now {
            watches.add(lane.id, to: watchGroup(of: lane))
        } else {
            watches.remove(lane.id)
        }
        let changes = [mayTry ? constraints.until : self.opening(of: lane), needsWatchFrom]
        timetable.set(lane.id, to: changes.compactMap(\.self).filter { now < $0 && $0 < .never }.min())
    }

    /// Returns the time from which a lane whose own time has come waits for a watch.
    ///
    /// A lane whose watch has ended waits for a while before. Otherwise a single lane that waits would make all idle watches
    /// take turns, each of them at once.
    private func needsWatchFrom(_ lane: SchedulerLane) -> Moment {
        guard !lane.isForced, !lane.hasTurn, let ended = gates[lane.endpoint]?.unwatchedSince else {
            return .zero
        }
        return ended + settings.watchIdleTime
    }

    /// Makes a lane wait only for a time, or for an event.
    private mutating func awaitTime(_ lane: SchedulerLane, _ moment: Moment?) {
        leave(lane)
        timetable.set(lane.id, to: moment)
    }

    private func watchGroup(of lane: SchedulerLane) -> WatchTurns.Group {
        let isDemanded = lane.isForced || lane.isRequested || lane.hasTurn
        let purpose: WatchTurns.Group.Purpose =
            isDemanded ? .demanded : seemsDown(lane.endpoint) ? .look : .attempt
        return WatchTurns.Group(submitter: lane.key.submitter, purpose: purpose)
    }
}

// MARK: - States of a watch that follows another one

extension Scheduler {
    /// Handles a state of a watch while the states of earlier watches still count.
    ///
    /// A watch that begins again proves no change: the lanes keep their backoff, and their held requests stay held. Only
    /// if there was no path at the last look, its return has the same effects as for a watch that continues. No attempt is
    /// in flight over the earlier path, so no connection is dropped.
    mutating func gateResumed(
        _ endpoint: Endpoint,
        _ state: GateState,
        after old: Gate,
        now: Moment,
        _ actions: inout [Action]
    ) {
        let wasDown = old.earlier != .notDown
        gates[endpoint]!.report(state)
        for id in old.lanes { endFlush(id, after: old) }
        if state != .unknown {
            gates[endpoint]!.earlier = nil
            if state.isDown != wasDown { gates[endpoint]!.since = now }
        }
        switch state {
        // A name is unknown until its lookup ends, also if there is a path.
        case .unknown: break
        case .down:
            reconnect(endpoint, .unknown, state, now: now)
            startGrace(endpoint, now: now)
        case .reachable(_, let route, _):
            if case .down(let reason)? = old.earlier {
                outageEnded(of: endpoint, .down(reason), state, now: now)
            }
            pathFound(endpoint, route, after: old, now: now, &actions)
        }
        for id in old.lanes.sorted() {
            schedule(id, now: now)
            interruptIfUnmet(id, now: now, &actions)
        }
    }

    /// Handles an outage that ended while the endpoint was not watched.
    private mutating func outageEnded(
        of endpoint: Endpoint,
        _ old: GateState,
        _ new: GateState,
        now: Moment
    ) {
        for id in gates[endpoint]!.lanes.sorted() {
            lanes[id]!.reset(releasing: [.trust], now: now)
        }
        reconnect(endpoint, old, new, now: now)
        pathReturned(to: endpoint, now: now)
    }
}
