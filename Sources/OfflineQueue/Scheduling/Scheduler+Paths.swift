// What a lost and found path means for attempts.

extension Scheduler {
    /// The host is reachable, for the first time, again or by another path.
    mutating func pathFound(
        _ host: String,
        _ way: UInt64?,
        after old: Gate,
        now: Moment,
        _ actions: inout [Action]
    ) {
        gates[host]!.way = way
        guard old.state != nil else { return abortUnknown(host, after: old, now: now, &actions) }
        actions.append(.dropConnections)
        gates[host]!.reconnectsUntil = now + settings.reconnectTime
        if let way, way == old.way {
            // Connections may have survived, but not those over a path before that.
            if old.foundAt == nil { graces.set(host, to: nil) }
        } else {
            // An attempt that may not be repeated has a grace: the answer may still come.
            startGrace(host, now: now)
            if graces.contains(host) { gates[host]!.foundAt = gates[host]!.foundAt ?? now }
            actions.append(.abort(host: host))
        }
        actions.append(.restartStalled(host: host))
    }

    /// The first word about a host. It drops no connections: the session watches their paths itself, also while there is no
    /// lane to the host, and a lone request uses an idle connection.
    ///
    /// Attempts that did not wait for a late word may be under way over another path.
    private func abortUnknown(_ host: String, after old: Gate, now: Moment, _ actions: inout [Action]) {
        let isLate = now >= old.since + settings.gatePatience
        if isLate, isSending(to: host) { actions.append(.abort(host: host)) }
    }

    private func isSending(to host: String) -> Bool {
        gates[host]!.lanes.contains { lanes[$0]!.inflight > 0 }
    }

    /// For attempts over a path that is lost or no longer used. A grace that runs already goes on: some attempts are over the
    /// path that was lost first.
    mutating func startGrace(_ host: String, now: Moment) {
        guard !graces.contains(host), isSending(to: host) else { return }
        graces.set(host, to: now + settings.lossGrace)
        gates[host]!.foundAt = nil
    }

    /// Ends the graces that are over at a moment.
    mutating func endGraces(until moment: Moment, now: Moment, _ actions: inout [Action]) {
        while let host = graces.removeFirst(until: moment) {
            guard let gate = gates[host] else { continue }
            actions.append(.endLost(host: host, begunBefore: gate.foundAt ?? now))
            gates[host]!.foundAt = nil
            // The path that was found meanwhile was lost, too.
            if gate.foundAt != nil, gate.state == .notReachable {
                graces.set(host, to: gate.since + settings.lossGrace)
            }
        }
    }

    /// Whether a failure to connect is repeated fast and without counting.
    ///
    /// The kernel may refuse a connection although there is a route: the neighbour does not answer yet, or the route came
    /// back a moment ago. This opens the time of fast repetitions once after each success.
    ///
    /// - Parameter isPathError: Whether the error number is one that the kernel has for a missing path.
    package mutating func isReconnecting(lane id: Int64, isPathError: Bool, now: Moment) -> Bool {
        guard let lane = lanes[id] else { return false }
        if isPathError, lane.reconnectsUntil == nil {
            lanes[id]!.reconnectsUntil = now + settings.reconnectTime
        }
        let ends = [gates[lane.host]?.reconnectsUntil, lanes[id]!.reconnectsUntil]
        return ends.contains { $0.map { now < $0 } == true }
    }

    /// Whether the lane pauses because this machine is short of descriptors, memory, threads or ports.
    package func isShort(lane id: Int64, now: Moment) -> Bool {
        guard let lane = lanes[id] else { return false }
        return lane.shortages > 0 && now < lane.closedUntil
    }
}
