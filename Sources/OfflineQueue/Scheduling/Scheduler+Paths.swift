// How lost and found paths affect attempts.

extension Scheduler {
    /// Handles a host that became reachable: for the first time, again, or by another path.
    mutating func pathFound(
        _ host: String,
        _ route: UInt64?,
        after old: Gate,
        now: Moment,
        _ actions: inout [Action]
    ) {
        gates[host]!.route = route
        guard old.state != nil else { return abortUnknown(host, after: old, now: now, &actions) }
        actions.append(.dropConnections)
        gates[host]!.reconnectsUntil = now + settings.reconnectTime
        if let route, route == old.route {
            // Connections over this path may have survived, but not those over an earlier path.
            setLosses(of: host, old.losses.filter { $0.foundAt != nil })
        } else {
            // An attempt that must not be repeated gets a grace period, because the response may still arrive. Without
            // an earlier path, nothing shows that attempts do not use this one.
            if old.route != nil { startGrace(host, now: now) }
            anotherIsFound(host, now: now)
            actions.append(.abort(host: host))
        }
        actions.append(.restartStalled(host: host))
    }

    /// Handles the first state of a host. It drops no connections: the session itself watches their paths, even when no
    /// lane uses the host, and a single request can reuse an idle one.
    ///
    /// If the state arrives after ``Settings/gateTimeout``, attempts that did not wait for it may use another path, so
    /// they are aborted.
    private func abortUnknown(_ host: String, after old: Gate, now: Moment, _ actions: inout [Action]) {
        let isLate = now >= old.since + settings.gateTimeout
        if isLate, isSending(to: host) { actions.append(.abort(host: host)) }
    }

    private func isSending(to host: String) -> Bool {
        gates[host]!.lanes.contains { lanes[$0]!.inflight > 0 }
    }

    /// Starts the grace period of attempts over a path that is lost or no longer used. One that runs because of the
    /// same loss continues.
    mutating func startGrace(_ host: String, now: Moment) {
        let losses = gates[host]!.losses
        guard losses.last.map({ $0.foundAt != nil }) ?? true, isSending(to: host) else { return }
        setLosses(of: host, losses + [Loss(at: now)])
    }

    private mutating func anotherIsFound(_ host: String, now: Moment) {
        guard let last = gates[host]!.losses.indices.last, gates[host]!.losses[last].foundAt == nil else {
            return
        }
        gates[host]!.losses[last].foundAt = now
    }

    mutating func setLosses(of host: String, _ losses: [Loss]) {
        gates[host]!.losses = losses
        graces.set(host, to: losses.first.map { $0.at + settings.lossGrace })
    }

    /// Ends the grace periods that are over at the given time.
    mutating func endGraces(until moment: Moment, now: Moment, _ actions: inout [Action]) {
        while let host = graces.removeFirst(until: moment) {
            guard let losses = gates[host]?.losses, let loss = losses.first else { continue }
            actions.append(.endLost(host: host, begunBefore: loss.foundAt ?? now))
            setLosses(of: host, Array(losses.dropFirst()))
        }
    }

    /// Returns whether a failed connection is retried fast and is not counted.
    ///
    /// The kernel may refuse a connection although there is a route: the neighbour does not respond yet, or the route
    /// returned only recently. The first path error after a success therefore starts a time window of fast retries.
    ///
    /// - Parameter isPathError: Whether the error number is one of the kernel's errors for a missing path.
    package mutating func isReconnecting(lane id: Int64, isPathError: Bool, now: Moment) -> Bool {
        guard let lane = lanes[id] else { return false }
        if isPathError, lane.reconnectsUntil == nil {
            lanes[id]!.reconnectsUntil = now + settings.reconnectTime
        }
        let ends = [gates[lane.host]?.reconnectsUntil, lanes[id]!.reconnectsUntil]
        return ends.contains { $0.map { now < $0 } == true }
    }

    /// Returns whether the lane pauses because this machine is short of descriptors, memory, threads or ports.
    package func isShort(lane id: Int64, now: Moment) -> Bool {
        guard let lane = lanes[id] else { return false }
        return lane.shortages > 0 && now < lane.closedUntil
    }
}
