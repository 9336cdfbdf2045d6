internal import NetwatchEventLoop

// Decides when a lane may try requests, and how many.

extension Scheduler {
    /// Makes a lane wait for a slot, or first for a watch or a turn, if it may try a request now, or else for its next time
    /// in the timetable. Must be called after every change of a lane or its gate.
    mutating func schedule(_ id: Int64, now: Moment) {
        guard let lane = lanes[id] else { return }
        let constraints = constraints(of: lane, now: now)
        scheduleWindowEnd(lane, constraints)
        heldTimes.set(.lane(id), to: lane.distrustedUntil)
        defer { updateUse(id, now: now) }
        guard isWatched(lane.endpoint) else { return scheduleUnwatched(lane, constraints, now: now) }
        let mayTry = mayTry(lane, now: now)
        if mayTry, constraints.isMet, passesPortalCheck(lane, now: now) {
            joinInTurn(lane)
            // The window may close while the lane waits for a slot.
            timetable.set(id, to: constraints.until)
        } else {
            leave(lane)
            timetable.set(id, to: mayTry ? wake(lane, constraints) : wake(lane))
        }
    }

    /// Returns the time at which to schedule a lane again that waits only for its constraints or for a portal.
    private func wake(_ lane: SchedulerLane, _ constraints: ConstraintState) -> Moment? {
        constraints.isMet ? portalWake(lane) : constraints.until
    }

    /// Makes a lane wait for a slot.
    mutating func join(_ lane: SchedulerLane) {
        let weight = settings.laneWeights[lane.key.label] ?? 1
        slots.join(lane.id, of: lane.origin, for: lane.key.submitter, weight: weight)
    }

    /// Returns whether the lane may try a request now, as far as its times and the state of its gate are concerned.
    func mayTry(_ lane: SchedulerLane, now: Moment) -> Bool {
        guard lane.claiming == nil, lane.inflight < capacity(of: lane) else { return false }
        guard let due = lane.due, due <= now, let opening = opening(of: lane) else { return false }
        return opening <= now
    }

    /// Returns whether the lane's next request may take over the slot of a successful attempt.
    func mayClaimNext(_ lane: SchedulerLane, now: Moment) -> Bool {
        guard !isStopped, !slots.isSlotAwaited(of: lane.origin), lane.releasing == nil,
            !slots.isThrottled(lane.origin)
        else { return false }
        guard !slots.isOverLimit(lane.origin), constraints(of: lane, now: now).isMet else { return false }
        guard lane.inflight <= capacity(of: lane), let opening = opening(of: lane) else { return false }
        // A FIFO lane has no due time for its next request until the current outcome is stored.
        return opening <= now && (lane.mode == .fifo || lane.due.map { $0 <= now } ?? false)
    }

    /// The maximum number of the lane's requests in flight.
    func capacity(of lane: SchedulerLane) -> Int {
        if lane.mode == .fifo || isProbing(lane) { return 1 }
        // A lane that has all slots of its origin does not wait for more, so that its requests can take over the slots
        // of finished ones.
        let limit = min(settings.inflightPerLane, slots.limit(of: lane.origin))
        return lane.canary.map { min(limit, 1 + $0.older) } ?? limit
    }

    /// Whether the lane sends only one request at a time, to find out whether the server can be reached.
    func isProbing(_ lane: SchedulerLane) -> Bool {
        lane.isHalfOpen || (isGateDown(lane.endpoint) && !lane.isForced)
    }

    /// Returns the time from which the lane may try requests; `nil` if it waits for a flush or a restart. While its endpoint
    /// is not watched, the last state of the watch before counts.
    func opening(of lane: SchedulerLane) -> Moment? {
        guard let opening = ownOpening(of: lane) else { return nil }
        guard !lane.isForced, let gate = gates[lane.endpoint] else { return opening }
        switch (gate.state, gate.watch) {
        case (nil, let watch?): return max(opening, watch.since + settings.gateTimeout)
        // The gate may be wrong. Therefore a host that is not reachable is still tried at intervals of the maximum
        // backoff.
        case _ where gate.downReason != nil:
            return max(opening, max(gate.since, lane.lastTry ?? .zero) + settings.backoff.cap)
        case (nil, nil): return opening
        default: return max(opening, gate.opensAt)
        }
    }

    /// Returns the time from which the lane may try requests as far as its gate is not concerned; `nil` if it waits for a
    /// flush or a restart.
    func ownOpening(of lane: SchedulerLane) -> Moment? {
        if lane.isHeld { return nil }
        return lane.isForced ? lane.opening : max(lane.opening, opensAt, lane.opensAt)
    }

    private func wake(_ lane: SchedulerLane) -> Moment? {
        guard lane.claiming == nil, let opening = opening(of: lane) else { return nil }
        guard let due = lane.due, lane.inflight < capacity(of: lane) else { return lane.canary?.endsAt }
        return max(due, opening)
    }

    /// Returns why a due request of the lane must wait; `nil` if nothing delays it.
    package func waitReason(ofLane id: Int64, now: Moment) -> QueuedReason? {
        if isStopped { return .stopped }
        if let lane = unloaded[id] { return reasonToBeUnloaded(lane) }
        // A claim is in progress, and may take the request.
        guard let lane = lanes[id], !lane.isClaiming else { return nil }
        let constraints = constraints(of: lane, now: now)
        // While the window is closed, a path or an open lane does not make the queue send the request.
        if case .unmet(.window(let window), _) = constraints { return .constraint(.window(window)) }
        guard let opening = opening(of: lane) else { return .laneClosed }
        guard opening <= now else {
            if let reason = pathReason(lane) { return reason }
            if isShort(lane: id, now: now) { return .localShortage }
            // A lane that waits only for the gate's first state reports no reason, because its attempt follows within
            // seconds.
            if lane.opening > now { return .laneClosed }
            return isSpread(lane, now: now) ? .paced : nil
        }
        guard isWatched(lane.endpoint) else { return reasonToBeUnwatched(lane) }
        if case .unmet(let constraint, _) = constraints {
            return pathReason(lane) ?? .constraint(constraint)
        }
        if let reason = portalReason(lane) { return reason }
        if lane.inflight >= capacity(of: lane) { return reasonToQueue(behind: lane) }
        if turns.contains(id) { return pathReason(lane) ?? .laneClosed }
        guard slots.isWaiting(id, of: lane.origin) else { return nil }
        return slots.isThrottled(lane.origin) ? .rateLimited : .noFreeSlot
    }

    /// Returns whether the retry budget has postponed the retries of a lane.
    ///
    /// - Parameter due: When the retry in question is due.
    package func isRetryPostponed(until due: Moment, lane id: Int64, now: Moment) -> Bool {
        guard let end = lanes[id]?.retriesPostponedUntil, end > now else { return false }
        // `due` may differ from the scheduler's time by a small correction of the wall clock.
        return due <= end + .seconds(1)
    }

    /// Returns the maximum number of requests in flight to the lane's origin, if signs of overload have lowered it;
    /// otherwise `nil`.
    package func loweredLimit(ofLane id: Int64) -> Int? {
        guard let lane = lanes[id] else { return nil }
        let limit = slots.limit(of: lane.origin)
        return limit < settings.inflightPerOrigin ? limit : nil
    }

    /// Returns whether the lane waits because clients must not return all at once (``Settings/reconnectSpread``).
    private func isSpread(_ lane: SchedulerLane, now: Moment) -> Bool {
        max(opensAt, lane.opensAt, gates[lane.endpoint]?.opensAt ?? .zero) > now
    }

    /// Returns why a request waits while the lane has its maximum number of requests in flight.
    private func reasonToQueue(behind lane: SchedulerLane) -> QueuedReason {
        if lane.mode == .fifo { return .behindEarlier }
        guard isProbing(lane) else { return .noFreeSlot }
        return pathReason(lane) ?? .laneClosed
    }

    /// Returns why a request waits whose endpoint must be watched first.
    private func reasonToBeUnwatched(_ lane: SchedulerLane) -> QueuedReason {
        pathReason(lane) ?? (turns.contains(lane.id) ? .laneClosed : .noFreeSlot)
    }

    /// Returns why there is no path to the lane's endpoint; `nil` if there is one, or if that is not known.
    private func pathReason(_ lane: SchedulerLane) -> QueuedReason? {
        gates[lane.endpoint]?.downReason.map { .notReachable($0) }
    }
}

// MARK: - Slots

extension Scheduler {
    /// Allocates free slots one by one, and then adds one claim for each lane that got slots.
    mutating func grantSlots(now: Moment, _ actions: inout [Action]) {
        guard !isStopped else { return }
        var (order, grants) = ([Int64](), [Int64: Int]())
        while let id = slots.take() {
            if grants[id] == nil { order.append(id) }
            grants[id, default: 0] += 1
            let lane = lanes[id]!
            // The lane may use another slot, but waits behind the other lanes for it.
            if lane.inflight + grants[id]! < capacity(of: lane) { join(lane) }
        }
        for id in order { actions.append(.claim(claim(id, limit: grants[id]!, now: now))) }
    }

    private mutating func claim(_ id: Int64, limit: Int, now: Moment) -> Claim {
        let lane = lanes[id]!
        lanes[id]!.claiming = limit
        lanes[id]!.claimedAt = slots.now
        lanes[id]!.inflight += limit
        lanes[id]!.releasing = nil
        lanes[id]!.isRequested = false
        lanes[id]!.hasTurn = false
        if lane.canary?.endsAt == nil { lanes[id]!.canary?.endsAt = now + settings.canaryTime }
        slots.leave(id, of: lane.origin)
        // A lane that waited for a slot with its turn may have been about to leave the memory.
        updateUnloading(id, now: now)
        let retries = allowance(of: lane, limit: limit, now: now)
        return Claim(
            lane: id,
            limit: limit,
            releasing: lane.releasing,
            retries: retries,
            epoch: lane.epoch
        )
    }

    /// Returns the time at which the caller must send ``Event/wake`` unless another event comes first; `nil` if only an
    /// event can cause work.
    package func nextWake(now: Moment) -> Moment? {
        if isStopped { return nil }
        let ofTurns = [nextTurn(now: now), nextWatch(now: now), nextLoad(now: now)]
        let ofLanes = ofTurns + [timetable.first, slots.rampEnd, slots.rateOpening]
        let ofSlots = slots.isFull ? [] : ofLanes
        return ([graces.first, windowEnds.first, heldTimes.first] + ofSlots).compactMap(\.self).min()
    }
}
