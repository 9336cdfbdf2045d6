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
