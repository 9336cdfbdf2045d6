internal import NetwatchEventLoop

extension Scheduler {
    /// The time at which a retried request is due, and the time until which the server closed its lane.
    package struct Settlement: Hashable, Sendable {
        package let due: Moment
        package let laneNotBefore: Moment?
    }

    /// Updates the lane from an outcome, before the outcome is written. ``Event/settled(lane:due:isDistrusted:)``
    /// follows after the write.
    ///
    /// - Parameters:
    ///   - epoch: The epoch of the claim.
    ///   - failures: The number of failures of this request, including this one.
    ///   - duration: How long the attempt held its slot.
    package mutating func conclude(
        lane id: Int64,
        epoch: Int,
        effect: LaneEffect,
        failures: Int,
        lasting duration: Duration = .zero,
        now: Moment
    ) -> Settlement {
        guard var lane = lanes[id] else { return Settlement(due: now, laneNotBefore: nil) }
        defer {
            lanes[id] = lane
            schedule(id, now: now)
        }
        if effect.isOfServer { slots.recordSpeed(of: lane.origin, isSlow: duration >= settings.slowAttempt) }
        let isCurrent = lane.epoch == epoch
        if effect != .shortage { lane.shortages = 0 }
        var due = now + settings.backoff.delay(after: failures, using: &random)
        switch effect {
        case .healthy: lane.recover()
        case .none: break
        case .renewed: due = max(now, lane.closedUntil)
        case .again: due = now
        case .failure where isCurrent:
            lane.failures += 1
            if lane.failures >= settings.failuresToClose { close(&lane, now: now) }
        case .close where isCurrent:
            close(&lane, now: now)
            due = lane.closedUntil
        case .reconnect where isCurrent:
            lane.pause(until: now + reconnectDelay(after: lane.reconnects))
            lane.reconnects += 1
            due = lane.closedUntil
        case .shortage where isCurrent:
            lane.pause(until: now + settings.shortage.delay(after: lane.shortages, using: &random))
            lane.shortages += 1
            due = lane.closedUntil
        case .reconnect, .shortage: due = max(now, lane.closedUntil)
        // The attempt began before the last path change, so it says nothing about the current path.
        case .failure where epoch < lane.resetEpoch, .close where epoch < lane.resetEpoch:
            due = max(now, lane.closedUntil)
        // The lane closed after the attempt began, and may have opened again.
        case .failure, .close: due = lane.closedUntil > now ? lane.closedUntil : due
        case .closeFor(let wait):
            lane.serverNotBefore = max(lane.serverNotBefore, now + spread(wait, lane))
            if isCurrent { lane.close(until: now) }
            return Settlement(due: lane.serverNotBefore, laneNotBefore: lane.serverNotBefore)
        case .distrust where isCurrent:
            lane.distrustedUntil = now + random.uniform(settings.distrust)
            lane.epoch += 1
        case .distrust: break
        case .hold: lane.isHeld = true
        }
        return Settlement(due: due, laneNotBefore: nil)
    }

    /// Passes the slot of a successful attempt to the lane's next request, so that one transaction writes the outcome
    /// and claims that request. After the commit, ``Event/nextClaimed(lane:taken:due:)`` follows instead of `settled`.
    /// Returns `nil` if the lane may not continue, or if another lane waits for a slot.
    package mutating func claimNext(lane id: Int64, after effect: LaneEffect, now: Moment) -> Claim? {
        guard effect == .healthy, let lane = lanes[id], mayClaimNext(lane, now: now) else { return nil }
        lanes[id]!.nextClaims += 1
        return Claim(lane: id, limit: 1, releasing: nil, epoch: lane.epoch)
    }

    private func reconnectDelay(after reconnects: Int) -> Duration {
        settings.reconnectDelay.doubled(times: reconnects, upTo: settings.backoff.cap)
    }

    private mutating func close(_ lane: inout SchedulerLane, now: Moment) {
        lane.close(until: now + settings.backoff.delay(after: lane.closures + 1, using: &random))
    }

    /// Returns the server's delay, but at least our own, plus a random part so that clients do not all return at once.
    private mutating func spread(_ wait: Duration, _ lane: SchedulerLane) -> Duration {
        let longest = max(wait, settings.backoff.delay(after: lane.closures + 1, using: &random))
        return longest + random.uniform(.zero...min(wait / 10, .seconds(30)))
    }
}

extension LaneEffect {
    /// Whether the server or the path to it determined the duration of the attempt.
    fileprivate var isOfServer: Bool { ![.none, .renewed, .shortage].contains(self) }
}
