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
