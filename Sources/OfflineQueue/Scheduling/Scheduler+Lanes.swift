// What a lane may do, and when.

extension Scheduler {
    /// Puts a lane where its state belongs: to those that wait for a slot if it may try now, else into the timetable.
    /// Whatever changes a lane or its gate has to call it.
    mutating func place(_ id: Int64, now: Moment) {
        guard let lane = lanes[id] else { return }
        let moment = wake(lane)
        if mayTry(lane, now: now) {
            slots.join(id, of: lane.origin)
            timetable.set(id, to: nil)
        } else {
            slots.leave(id, of: lane.origin)
            timetable.set(id, to: moment)
        }
    }

    private func mayTry(_ lane: SchedulerLane, now: Moment) -> Bool {
        guard lane.claiming == nil, lane.inflight < capacity(of: lane) else { return false }
        guard let due = lane.due, due <= now, let opening = opening(of: lane) else { return false }
        return opening <= now
    }

    /// Whether the lane's next request may have the slot of the one that ends.
    func mayProceed(_ lane: SchedulerLane, now: Moment) -> Bool {
        guard !isStopped, !slots.isAwaited(slotOf: lane.origin), lane.expediting == nil else { return false }
        guard lane.inflight <= capacity(of: lane), let opening = opening(of: lane) else { return false }
        // Nothing of a FIFO lane is due before its head is settled.
        return opening <= now && (lane.mode == .fifo || lane.due.map { $0 <= now } ?? false)
    }

    /// How many of the lane's requests may be on their way at once.
    func capacity(of lane: SchedulerLane) -> Int {
        lane.mode == .fifo || isProbing(lane) ? 1 : settings.inflightPerLane
    }

    /// One request goes first, and shows whether others may follow.
    private func isProbing(_ lane: SchedulerLane) -> Bool {
        lane.isHalfOpen || (isGateDown(lane.host) && !lane.isForced)
    }

    /// From when the lane may try; `nil` until somebody acts.
    private func opening(of lane: SchedulerLane) -> Moment? {
        if lane.isHeld { return nil }
        let opening = lane.opening
        guard !lane.isForced, let gate = gates[lane.host] else { return opening }
        switch gate.state {
        case nil: return max(opening, gate.since + settings.gatePatience)
        // The gate may be wrong, so it is doubted once in a while.
        case .notReachable?:
            return max(opening, max(gate.since, lane.lastTry ?? .zero) + settings.backoff.cap)
        case .reachable?, .unknown?: return opening
        }
    }

    private func wake(_ lane: SchedulerLane) -> Moment? {
        guard lane.claiming == nil, let opening = opening(of: lane) else { return nil }
        // The release of what is not trusted needs no slot.
        guard let due = lane.due, lane.inflight < capacity(of: lane) else { return lane.distrustedUntil }
        return min(max(due, opening), lane.distrustedUntil ?? .never)
    }

    /// Why a request of the lane has to wait although it is due; `nil` when it need not.
    package func obstacle(toLane id: Int64, now: Moment) -> QueuedReason? {
        if isStopped { return .stopped }
        // A claim under way may have the request.
        guard let lane = lanes[id], !lane.isClaiming else { return nil }
        guard let opening = opening(of: lane) else { return .laneClosed }
        guard opening <= now else {
            if isGateDown(lane.host) { return .notReachable }
            if isShort(lane: id, now: now) { return .localShortage }
            // What waits only for the gate's first word waits for an answer worth having.
            return lane.opening > now ? .laneClosed : nil
        }
        if lane.inflight >= capacity(of: lane) { return reasonToQueue(behind: lane) }
        return slots.isWaiting(id, of: lane.origin) ? .noFreeSlot : nil
    }

    /// Why requests wait while their lane sends as many as it may.
    private func reasonToQueue(behind lane: SchedulerLane) -> QueuedReason {
        if lane.mode == .fifo { return .behindEarlier }
        guard isProbing(lane) else { return .noFreeSlot }
        return isGateDown(lane.host) ? .notReachable : .laneClosed
    }
}
