// Opens lanes early whose server responds again, to another lane or to a probe.

extension Scheduler {
    /// Returns whether a response of one of these origins could open a lane.
    package func awaitsResponse(of origins: [Origin]) -> Bool {
        origins.contains { unansweredLanes[$0] != nil }
    }

    /// Handles a successful probe. As after an outage, requests wait for the spread.
    mutating func probeSucceeded(_ origins: [Origin], now: Moment) {
        for origin in origins where unansweredLanes[origin] != nil {
            openLanes(of: origin, at: drawSpread(now: now), now: now)
        }
    }

    /// Handles a success of a lane, which proves the same for the other lanes of its origin as a successful probe. They
    /// do not wait for the spread, because the lane whose request has succeeded has waited for a random time already.
    /// The other requests of that lane keep their backoff, which protects the server from a request that it cannot
    /// answer.
    mutating func openLanes(besides lane: SchedulerLane, now: Moment) {
        guard unansweredLanes[lane.origin] != nil else { return }
        unansweredLanes[lane.origin]?.remove(lane.id)
        openLanes(of: lane.origin, at: .zero, now: now)
    }

    /// Opens the lanes of an origin whose last attempts got no response, because the origin has responded since. Each
    /// of them sends a canary.
    ///
    /// Only delays that missing responses have caused end. Closures by `Retry-After`, for an untrusted certificate and
    /// by a shortage of this machine continue. A lane whose last attempt got a response, such as a 500, keeps its
    /// backoff.
    ///
    /// A response opens each lane once. Further ones have no effect until an attempt of the lane fails again.
    private mutating func openLanes(of origin: Origin, at opensAt: Moment, now: Moment) {
        guard let ids = unansweredLanes.removeValue(forKey: origin) else { return }
        // The order must not depend on hash seeds, so that a run can be replayed.
        let opened = ids.sorted().filter { lanes[$0]?.mayBeOpenedByResponse(now: now) == true }
        // An origin that is still prompt has failed fast or only once. Its window is sufficient.
        if !opened.isEmpty, slots.standing(of: origin) != .prompt { slots.reconnected(origin, now: now) }
        for id in opened {
            lanes[id]!.openByResponse(at: opensAt, now: now)
            schedule(id, now: now)
        }
    }

    /// Records whether the server responded to an attempt of a lane.
    ///
    /// A server may respond to others and never to the requests of this lane, for example because one of them crashes
    /// it. The failure of an attempt that began soon after an opening therefore does not count, and the lane waits for
    /// its backoff. Otherwise each response to another lane would cause another attempt.
    mutating func recordResponse(
        to lane: inout SchedulerLane,
        _ effect: LaneEffect,
        _ course: AttemptCourse,
        isOnPath: Bool,
        now: Moment
    ) {
        if course.hasResponse { lane.isUnanswered = false }
        let began = now - course.duration
        let isSoonAfterOpening = lane.openedByResponse.map { began < $0 + settings.reconnectTime } ?? false
        guard [.failure, .close].contains(effect), !course.hasResponse, isOnPath, !isSoonAfterOpening else {
            return
        }
        lane.isUnanswered = true
        unansweredLanes[lane.origin, default: []].insert(lane.id)
    }

    /// Forgets a lane that is removed.
    mutating func forgetUnanswered(_ lane: SchedulerLane) {
        guard var ids = unansweredLanes[lane.origin], ids.remove(lane.id) != nil else { return }
        unansweredLanes[lane.origin] = ids.isEmpty ? nil : ids
    }
}
