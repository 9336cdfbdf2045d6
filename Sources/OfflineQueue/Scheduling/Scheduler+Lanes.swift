// When a lane may try its requests, and how many.

extension Scheduler {
    /// Puts a lane into the line for slots if it may try now, otherwise into the timetable. Must be called after every
    /// change of a lane or its gate.
    mutating func schedule(_ id: Int64, now: Moment) {
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

    /// Returns whether the lane's next request may take over the slot of the attempt that ends.
    func mayClaimNext(_ lane: SchedulerLane, now: Moment) -> Bool {
        guard !isStopped, !slots.isSlotAwaited(of: lane.origin), lane.releasing == nil else { return false }
        guard lane.inflight <= capacity(of: lane), let opening = opening(of: lane) else { return false }
        // The next request of a FIFO lane is not due before the current one is settled.
        return opening <= now && (lane.mode == .fifo || lane.due.map { $0 <= now } ?? false)
    }

    /// The maximum number of the lane's requests in flight.
    func capacity(of lane: SchedulerLane) -> Int {
        lane.mode == .fifo || isProbing(lane) ? 1 : settings.inflightPerLane
    }

    /// Whether the lane sends a single request first, to find out whether others may follow.
    private func isProbing(_ lane: SchedulerLane) -> Bool {
        lane.isHalfOpen || (isGateDown(lane.host) && !lane.isForced)
    }

    /// The time from which the lane may try; `nil` if it waits for a flush or a restart.
    private func opening(of lane: SchedulerLane) -> Moment? {
        if lane.isHeld { return nil }
        let opening = lane.opening
        guard !lane.isForced, let gate = gates[lane.host] else { return opening }
        switch gate.state {
        case nil: return max(opening, gate.since + settings.gateTimeout)
        // The gate may be wrong, so the host is tried once per longest backoff all the same.
        case .notReachable?:
            return max(opening, max(gate.since, lane.lastTry ?? .zero) + settings.backoff.cap)
        case .reachable?, .unknown?: return opening
        }
    }

    private func wake(_ lane: SchedulerLane) -> Moment? {
        guard lane.claiming == nil, let opening = opening(of: lane) else { return nil }
        // Releasing requests held for trust needs no slot, so the lane wakes even without one.
        guard let due = lane.due, lane.inflight < capacity(of: lane) else { return lane.distrustedUntil }
        return min(max(due, opening), lane.distrustedUntil ?? .never)
    }

    /// Returns why a due request of the lane must wait; `nil` if nothing delays it.
    package func waitReason(ofLane id: Int64, now: Moment) -> QueuedReason? {
        if isStopped { return .stopped }
        // The claim in progress may take the request.
        guard let lane = lanes[id], !lane.isClaiming else { return nil }
        guard let opening = opening(of: lane) else { return .laneClosed }
        guard opening <= now else {
            if isGateDown(lane.host) { return .notReachable }
            if isShort(lane: id, now: now) { return .localShortage }
            // A lane that waits only for the gate's first state has no obstacle yet, because the attempt follows soon.
            return lane.opening > now ? .laneClosed : nil
        }
        if lane.inflight >= capacity(of: lane) { return reasonToQueue(behind: lane) }
        return slots.isWaiting(id, of: lane.origin) ? .noFreeSlot : nil
    }

    /// Returns why requests wait while the lane has its maximum in flight.
    private func reasonToQueue(behind lane: SchedulerLane) -> QueuedReason {
        if lane.mode == .fifo { return .behindEarlier }
        guard isProbing(lane) else { return .noFreeSlot }
        return isGateDown(lane.host) ? .notReachable : .laneClosed
    }
}
