internal import NetwatchEventLoop

extension Scheduler {
    /// The times that follow from an outcome. `due` is when a retried request is due. `laneNotBefore` is when the lane
    /// opens again, if the server closed it; otherwise `nil`.
    package struct Settlement: Hashable, Sendable {
        package let due: Moment
        package let laneNotBefore: Moment?
    }

    /// Updates a lane after an attempt. Called before the outcome is stored; ``Event/settled(lane:due:isDistrusted:)``
    /// must follow when it is stored.
    ///
    /// - Parameters:
    ///   - epoch: The lane's epoch when the request was claimed (``Claim/epoch``).
    ///   - failures: The number of the request's attempts so far. It determines the backoff of a retry.
    ///   - course: How long the attempt took, and how it ended.
    package mutating func conclude(
        lane id: Int64,
        epoch: Int,
        effect: LaneEffect,
        failures: Int,
        course: AttemptCourse = AttemptCourse(),
        now: Moment
    ) -> Settlement {
        guard let before = lanes[id] else { return Settlement(due: now, laneNotBefore: nil) }
        slots.advance(to: now)
        // A success over an earlier path does not prove that the current one works.
        if effect == .healthy, epoch >= before.resetEpoch { openLanes(besides: before, now: now) }
        var lane = before
        defer {
            lanes[id] = lane
            schedule(id, now: now)
        }
        if let canary = lane.canary, epoch < canary.epoch { lane.canary!.older -= 1 }
        if effect.isFailure {
            slots.recordFailure(of: lane.origin)
            lane.refusals.failed(now: now)
        }
        recordLoad(of: lane.origin, effect, course, isOnPath: epoch >= lane.resetEpoch, now: now)
        if effect != .shortage { lane.shortages = 0 }
        if effect.isOfServer { lane.isUnresolved = course.isUnresolved }
        recordResponse(to: &lane, effect, course, isOnPath: epoch >= lane.resetEpoch, now: now)
        let shortest = effect == .unconfirmed ? longestConfirmationDelay : .zero
        let retry = now + max(settings.backoff.delay(after: failures, using: &random), shortest)
        let due = apply(effect, to: &lane, epoch: epoch, now: now) ?? retry
        return Settlement(due: due, laneNotBefore: effect.isClosedByServer ? lane.serverNotBefore : nil)
    }

    /// Records what an attempt shows about the load of its server.
    ///
    /// - Parameter isOnPath: Whether the attempt began after the last path change or flush.
    private mutating func recordLoad(
        of origin: Origin,
        _ effect: LaneEffect,
        _ course: AttemptCourse,
        isOnPath: Bool,
        now: Moment
    ) {
        let began = now - course.duration
        if effect == .healthy {
            slots.recordSuccess(of: origin, began: began, isOnPath: isOnPath, now: now)
            if course.isRetry { slots.recordSuccessfulRetry(of: origin, began: began) }
        }
        if isOnPath, effect.isOverload || (course.isTimeout && effect == .failure) {
            slots.recordOverload(of: origin, began: began, now: now)
        }
        if effect.isOfServer { recordStanding(of: origin, effect, course, isOnPath: isOnPath) }
    }

    /// Applies the effect of an attempt to its lane.
    ///
    /// - Parameter epoch: The lane's epoch when the request was claimed.
    /// - Returns: The time of a retry; `nil` for the backoff of the request.
    private mutating func apply(
        _ effect: LaneEffect,
        to lane: inout SchedulerLane,
        epoch: Int,
        now: Moment
    ) -> Moment? {
        let (isCurrent, isOnPath) = (epoch == lane.epoch, epoch >= lane.resetEpoch)
        switch effect {
        case .healthy: lane.recover(isOnPath: isOnPath)
        case .none: break
        case .renewed: return max(now, lane.closedUntil)
        case .again: return now
        case .failure where isCurrent:
            lane.failures += 1
            if lane.failures >= settings.failuresToClose { close(&lane, now: now) }
        case .close where isCurrent, .foreign where isCurrent:
            close(&lane, now: now)
            return lane.closedUntil
        case .reconnect where isCurrent:
            lane.pause(until: now + reconnectDelay(after: lane.reconnects))
            lane.reconnects += 1
            return lane.closedUntil
        case .unconfirmed:
            guard let end = lane.refusals.closedUntil, end > now else { break }
            if isCurrent { lane.awaitConfirmation(until: end) }
            return end
        case .shortage where isCurrent:
            lane.pause(until: now + settings.shortage.delay(after: lane.shortages, using: &random))
            lane.shortages += 1
            return lane.closedUntil
        case .reconnect, .shortage: return max(now, lane.closedUntil)
        // The attempt began before the last path change or flush, so its failure does not concern the current path.
        case .failure where !isOnPath, .close where !isOnPath, .foreign where !isOnPath:
            return max(now, lane.closedUntil)
        // The lane was closed after the attempt began, and may be open again. The failure does not close it again.
        case .failure, .close, .foreign: return lane.closedUntil > now ? lane.closedUntil : nil
        case .closeFor(let wait):
            lane.serverNotBefore = max(lane.serverNotBefore, now + spread(wait, lane))
            if isCurrent { lane.close(until: now) }
            return lane.serverNotBefore
        case .distrust where isCurrent:
            lane.distrustedUntil = now + random.uniform(settings.distrust)
            lane.epoch += 1
        case .distrust: break
        case .hold: lane.isHeld = true
        }
        return nil
    }

    /// Returns a claim for the lane's next request, which takes over the slot of a successful attempt. One transaction
    /// then stores the outcome and claims that request. After the commit, ``Event/nextClaimed(lane:taken:use:due:)``
    /// must follow instead of `settled`.
    ///
    /// - Returns: `nil` if the lane may not continue, or if another lane waits for the slot.
    package mutating func claimNext(lane id: Int64, after effect: LaneEffect, now: Moment) -> Claim? {
        slots.advance(to: now)
        guard effect == .healthy, let lane = lanes[id], mayClaimNext(lane, now: now),
            passesPortalCheck(lane, now: now)
        else { return nil }
        lanes[id]!.isRequested = false
        lanes[id]!.nextClaims += 1
        lanes[id]!.nextClaimedAt.append(slots.now)
        slots.tookOver(lane.origin)
        let retries = allowance(of: lane, limit: 1, now: now)
        return Claim(lane: id, limit: 1, releasing: nil, retries: retries, epoch: lane.epoch)
    }

    /// Records how the server responded. An attempt over an earlier path that failed or was slow says nothing about the
    /// server: it may have waited for the path to return.
    private mutating func recordStanding(
        of origin: Origin,
        _ effect: LaneEffect,
        _ course: AttemptCourse,
        isOnPath: Bool
    ) {
        var course = course
        course.hasResponse = course.hasResponse || effect == .healthy
        let standing = slots.standing(of: origin).after(course, settings)
        guard isOnPath || standing == .prompt,
            course.hasResponse || slots.isAfterStandingChange(course, about: origin)
        else { return }
        slots.setStanding(standing, of: origin)
    }

    func reconnectDelay(after reconnects: Int) -> Duration {
        settings.reconnectDelay.doubled(times: reconnects, upTo: settings.backoff.cap)
    }

    private mutating func close(_ lane: inout SchedulerLane, now: Moment) {
        lane.close(until: now + settings.backoff.delay(after: lane.closures + 1, using: &random))
    }

    /// Returns the time for which a `Retry-After` closes the lane: the server's delay, but at least the lane's own
    /// backoff. A random part of up to 10 %, at most 30 s, is added, so that clients do not return all at once.
    private mutating func spread(_ wait: Duration, _ lane: SchedulerLane) -> Duration {
        let longest = max(wait, settings.backoff.delay(after: lane.closures + 1, using: &random))
        return longest + random.uniform(.zero...min(wait / 10, .seconds(30)))
    }
}

extension LaneEffect {
    /// Whether the server closed the lane with `Retry-After`.
    fileprivate var isClosedByServer: Bool { if case .closeFor = self { true } else { false } }

    /// Whether the duration of the attempt depended on the server or the path, and not on this machine.
    fileprivate var isOfServer: Bool { ![.none, .renewed, .shortage].contains(self) }

    /// Whether the effect alone is a sign of overload: a 429, a 503, or a failure to connect over a path that is known.
    fileprivate var isOverload: Bool {
        switch self {
        case .close, .closeFor: true
        case .healthy, .none, .renewed, .again, .failure, .foreign, .reconnect, .shortage: false
        case .unconfirmed, .distrust, .hold: false
        }
    }

    /// Whether the attempt failed because of the path, the server or its overload.
    fileprivate var isFailure: Bool {
        switch self {
        case .failure, .close, .foreign, .reconnect, .closeFor, .distrust: true
        case .healthy, .none, .renewed, .again, .shortage, .unconfirmed, .hold: false
        }
    }
}
