// Limits how often the queue tries hosts that do not answer, while it has requests to many hosts.

extension Scheduler {
    /// Makes a lane that may try a request wait for a slot, or first for its turn if its host does not answer.
    mutating func joinInTurn(_ lane: SchedulerLane) {
        watches.remove(lane.id)
        guard needsTurn(lane) else {
            turns.remove(lane.id)
            return join(lane)
        }
        slots.leave(lane.id, of: lane.origin)
        turns.add(lane.id, to: turnGroup(of: lane))
    }

    /// Makes a lane that may try no request wait neither for a slot nor for a turn nor for a watch. While it waits for the
    /// first state of a watch, it keeps its turn, or its place in the line for one.
    mutating func leave(_ lane: SchedulerLane) {
        slots.leave(lane.id, of: lane.origin)
        watches.remove(lane.id)
        if let gate = gates[lane.endpoint], gate.watch != nil, gate.state == nil { return }
        turns.remove(lane.id)
        lanes[lane.id]?.hasTurn = false
    }

    /// Lets the lanes whose turn it is wait for a slot.
    mutating func giveTurns(now: Moment) {
        while let id = turns.takeNext(now: now) {
            lanes[id]?.hasTurn = true
            schedule(id, now: now)
        }
    }

    /// The time at which the next lane may take its turn; `nil` if no lane waits for one, or if one may take it at the
    /// next event.
    func nextTurn(now: Moment) -> Moment? { turns.opensAt.flatMap { $0 > now ? $0 : nil } }

    /// Returns whether the lane needs a turn before an attempt.
    ///
    /// A path change, a flush, a release and a response of the origin to another lane prove or demand that the host is
    /// tried now. After each of them, the lane needs no turn.
    func needsTurn(_ lane: SchedulerLane) -> Bool {
        let hasMany = gates.count > settings.turnsFromEndpoints || !unloaded.isEmpty
        guard hasMany, !lane.hasTurn, !lane.isForced, !lane.isRequested
        else { return false }
        return lane.isUnanswered || seemsDown(lane.endpoint) || hasReconnectedInVain(lane)
    }

    /// Returns whether the fast retries after an outage are over and had no success.
    private func hasReconnectedInVain(_ lane: SchedulerLane) -> Bool {
        reconnectDelay(after: lane.reconnects) > settings.reconnectTime
    }

    func turnGroup(of lane: SchedulerLane) -> AttemptTurns.Group {
        let hasResponded =
            switch slots.standing(of: lane.origin) {
            case .new, .silent: false
            case .prompt, .slow, .doubtful: true
            }
        return AttemptTurns.Group(submitter: lane.key.submitter, hasResponded: hasResponded)
    }
}

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

// Ends or repeats attempts when the path to their endpoint is lost or found.

extension Scheduler {
    /// Handles an endpoint that becomes reachable: for the first time, after a loss, or over another path.
    mutating func pathFound(
        _ endpoint: Endpoint,
        _ route: UInt64?,
        after old: Gate,
        now: Moment,
        _ actions: inout [Action]
    ) {
        gates[endpoint]!.route = route
        if old.route == nil, old.state == nil || old.state == .unknown {
            return firstPathFound(endpoint, &actions)
        }
        actions.append(.dropConnections)
        pathReturned(to: endpoint, now: now)
        if let route, route == old.route {
            // The same path returned, so connections over it may have survived, and its grace period ends. Losses of
            // earlier paths remain.
            setLosses(of: endpoint, old.losses.filter { $0.foundAt != nil })
        } else {
            // The response to an attempt that must not be repeated may still arrive, so such an attempt gets a grace
            // period. If no earlier path is known, the attempts may already use the new path.
            if old.route != nil { startGrace(endpoint, now: now) }
            anotherIsFound(endpoint, now: now)
            actions.append(.abort(endpoint))
        }
        // An attempt that starts again would use a path that was not probed for portals.
        actions.append(isChecked(endpoint) ? .abort(endpoint) : .restartStalled(endpoint))
    }

    private func isChecked(_ endpoint: Endpoint) -> Bool {
        gates[endpoint]!.lanes.contains { isChecked(lanes[$0]!.origin) }
    }

    /// Starts the time in which failures are expected, because addresses or names do not work yet.
    mutating func pathReturned(to endpoint: Endpoint, now: Moment) {
        lastReconnectEnds = now + settings.reconnectTime
        gates[endpoint]!.reconnectsUntil = lastReconnectEnds
    }

    /// Handles the first known path to an endpoint, for example when a slow name server has answered. Idle connections
    /// stay open, so that requests can reuse them. The session itself watches the paths of its connections.
    ///
    /// Attempts that began before continue: the kernel has chosen their path, and nothing shows that it has changed.
    private func firstPathFound(_ endpoint: Endpoint, _ actions: inout [Action]) {
        if isSending(to: endpoint), !isChecked(endpoint) { actions.append(.restartStalled(endpoint)) }
    }

    private func isSending(to endpoint: Endpoint) -> Bool {
        gates[endpoint]!.lanes.contains { lanes[$0]!.inflight > 0 }
    }

    /// Starts the grace period of attempts over a path that was lost or replaced. A grace period that already runs for
    /// the same loss continues unchanged.
    mutating func startGrace(_ endpoint: Endpoint, now: Moment) {
        let losses = gates[endpoint]!.losses
        guard losses.last.map({ $0.foundAt != nil }) ?? true, isSending(to: endpoint) else { return }
        setLosses(of: endpoint, losses + [Loss(at: now)])
    }

    /// Records when another path replaced the lost one. Attempts that began later use the new path.
    private mutating func anotherIsFound(_ endpoint: Endpoint, now: Moment) {
        guard let last = gates[endpoint]!.losses.indices.last, gates[endpoint]!.losses[last].foundAt == nil
        else {
            return
        }
        gates[endpoint]!.losses[last].foundAt = now
    }

    /// Sets the losses of an endpoint, and schedules the end of the first grace period.
    mutating func setLosses(of endpoint: Endpoint, _ losses: [Loss]) {
        gates[endpoint]!.losses = losses
        graces.set(endpoint, to: losses.first.map { $0.at + settings.lossGrace })
    }

    /// Ends the grace periods that are over at the given time.
    mutating func endGraces(until moment: Moment, now: Moment, _ actions: inout [Action]) {
        while let endpoint = graces.removeFirst(until: moment) {
            guard let losses = gates[endpoint]?.losses, let loss = losses.first else { continue }
            actions.append(.endLost(endpoint, begunBefore: loss.foundAt ?? now))
            setLosses(of: endpoint, Array(losses.dropFirst()))
        }
    }

    /// Returns whether a failure to connect is retried fast and is not counted as an attempt.
    ///
    /// The kernel may refuse a connection although there is a route, because the neighbour does not respond yet, or
    /// because the route returned only recently. The first path error after a success therefore starts a period of fast
    /// retries (``Settings/reconnectTime``).
    ///
    /// - Parameter isPathError: Whether the error number is one of the kernel's errors for a missing path.
    package mutating func isReconnecting(lane id: Int64, isPathError: Bool, now: Moment) -> Bool {
        guard let lane = lanes[id] else { return false }
        if isPathError, lane.reconnectsUntil == nil {
            lanes[id]!.reconnectsUntil = now + settings.reconnectTime
        }
        let ends = [gates[lane.endpoint]?.reconnectsUntil, lanes[id]!.reconnectsUntil]
        return ends.contains { $0.map { now < $0 } == true }
    }

    /// Returns whether the lane is closed because this machine is short of descriptors, memory, threads or ports.
    package func isShort(lane id: Int64, now: Moment) -> Bool {
        guard let lane = lanes[id] else { return false }
        return lane.shortages > 0 && now < lane.closedUntil
    }
}
