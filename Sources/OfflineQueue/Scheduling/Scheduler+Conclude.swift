extension Scheduler {
    /// When a request that is retried is due, and until when its lane is closed by the server.
    package struct Settlement: Hashable, Sendable {
        package let due: Moment
        package let laneNotBefore: Moment?
    }

    /// Learns from an outcome, before it is written; ``Event/settled(lane:due:isDistrusted:)`` follows once
    /// it is.
    ///
    /// - Parameters:
    ///   - epoch: The claim's.
    ///   - failures: How often this request failed, this time included.
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
            place(id, now: now)
        }
        if effect.isOfServer { slots.learn(lane.origin, isSlow: duration >= settings.slowAttempt) }
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
        // It says nothing about the path there is now.
        case .failure where epoch < lane.freshEpoch, .close where epoch < lane.freshEpoch:
            due = max(now, lane.closedUntil)
        // The lane was closed since the attempt began, and may have opened again.
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

    /// Gives the slot of an attempt that succeeded to the lane's next request, so that one transaction writes the
    /// outcome and claims that request. ``Event/proceeded(lane:taken:due:)`` follows instead of `settled` once it is
    /// committed. `nil` when the lane may not go on, or when another lane waits for a slot.
    package mutating func proceed(lane id: Int64, after effect: LaneEffect, now: Moment) -> Claim? {
        guard effect == .healthy, let lane = lanes[id], mayProceed(lane, now: now) else { return nil }
        lanes[id]!.proceeding += 1
        return Claim(lane: id, limit: 1, expediting: nil, epoch: lane.epoch)
    }

    private func reconnectDelay(after reconnects: Int) -> Duration {
        min(settings.backoff.cap, settings.reconnectDelay * (1 << min(reconnects, 20)))
    }

    private mutating func close(_ lane: inout SchedulerLane, now: Moment) {
        lane.close(until: now + settings.backoff.delay(after: lane.closures + 1, using: &random))
    }

    /// The server's time, not less than our own, and a little more so that clients do not come at once.
    private mutating func spread(_ wait: Duration, _ lane: SchedulerLane) -> Duration {
        let longest = max(wait, settings.backoff.delay(after: lane.closures + 1, using: &random))
        return longest + random.uniform(.zero...min(wait / 10, .seconds(30)))
    }
}

extension LaneEffect {
    /// Whether the server, or the way to it, decided how long the attempt took.
    fileprivate var isOfServer: Bool { ![.none, .renewed, .shortage].contains(self) }
}
