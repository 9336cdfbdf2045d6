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
        // The session watches the paths of its connections itself, also while there is no lane to their host. So the first
        // word about a host drops none, and a lone request uses an idle connection.
        guard old.state != nil else { return }
        actions.append(.dropConnections)
        gates[host]!.reconnectsUntil = now + settings.reconnectTime
        if let way, way == old.way {
            // Connections may have survived, but not those over a path before that.
            if old.foundAt == nil { graces.set(host, to: nil) }
        } else {
            // An attempt that may not be repeated keeps its grace: the answer may still come.
            if graces.contains(host) { gates[host]!.foundAt = gates[host]!.foundAt ?? now }
            actions.append(.abort(host: host))
        }
    }

    /// A grace that runs already goes on: some attempts are over the path that was lost first.
    mutating func pathLost(_ host: String, now: Moment) {
        if !graces.contains(host) {
            graces.set(host, to: now + settings.lossGrace)
            gates[host]!.foundAt = nil
        }
    }

    mutating func endGraces(now: Moment, _ actions: inout [Action]) {
        while let host = graces.removeFirst(until: now) {
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
