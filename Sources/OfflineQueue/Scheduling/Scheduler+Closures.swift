// Reports which lanes are closed after failures.

extension Scheduler {
    /// The period for which a lane is closed after failures.
    package struct Closure: Hashable, Sendable {
        package let lane: Int64
        package let key: LaneKey
        package let until: Moment
        /// Whether a shortage of this machine's resources caused the closure.
        package let isLocal: Bool
    }

    /// Returns the current closure of a lane; `nil` if failures have not closed it, or it is not in memory.
    package func closure(ofLane id: Int64, now: Moment) -> Closure? {
        lanes[id].flatMap { Closure($0, now: now) }
    }

    /// Returns the current closures of the lanes in memory, sorted by host and label.
    package func closures(now: Moment) -> [Closure] {
        lanes.values.compactMap { Closure($0, now: now) }
            .sorted {
                ($0.key.origin.host, $0.key.label, $0.until) < ($1.key.origin.host, $1.key.label, $1.until)
            }
    }

    /// Resets the failures of a lane whose last request was delivered, given up or removed.
    ///
    /// A closed lane is opened but not removed, because another request may have been enqueued in the meantime. If the
    /// lane's next claim finds no request, the lane is removed.
    mutating func emptied(_ id: Int64, now: Moment) {
        if var lane = unloaded[id] {
            lane.emptied(now: now)
            unloaded.set(id, lane)
        }
        guard let lane = lanes[id], lane.isHeld || lane.failuresEnd > now else { return }
        lanes[id]!.recover()
        lanes[id]!.distrustedUntil = nil
        lanes[id]!.isHeld = false
        lanes[id]!.refusals = RefusalCheck(since: now)
        lanes[id]!.rowsAreDue(at: now)
        schedule(id, now: now)
    }
}

extension Scheduler.Closure {
    fileprivate init?(_ lane: SchedulerLane, now: Moment) {
        guard lane.failuresEnd > now else { return nil }
        self.init(
            lane: lane.id,
            key: lane.key,
            until: lane.failuresEnd,
            isLocal: lane.shortages > 0
        )
    }
}

// Confirms refusals before the requests of a lane are given up because of them.

extension Scheduler {
    /// An attempt whose response may be a refusal.
    package struct Response: Sendable {
        let lane: Int64
        /// The lane's epoch when the request was claimed (``Claim/epoch``).
        let epoch: Int
        /// When the attempt began.
        let began: Moment
        /// The status of the previous response to the request; `nil` if there was none.
        let previousStatus: Int?
        /// Whether the request may be sent again, and has attempts left.
        let mayBeRepeated: Bool

        package init(lane: Int64, epoch: Int, began: Moment, previousStatus: Int?, mayBeRepeated: Bool) {
            (self.lane, self.epoch, self.began) = (lane, epoch, began)
            (self.previousStatus, self.mayBeRepeated) = (previousStatus, mayBeRepeated)
        }
    }

    /// Returns the classification of an attempt. If the server's refusal must be confirmed, the result is a retry instead
    /// of the end of the request. Must be called before ``conclude(lane:epoch:effect:failures:course:now:)``, which needs
    /// the effect of the result.
    ///
    /// A request that must not be sent again ends with its first refusal. The lane waits for the confirmation in any case,
    /// so that its other requests do not end for the same reason.
    package mutating func confirmed(
        _ classification: AttemptClassification,
        of response: Response,
        now: Moment
    ) -> AttemptClassification {
        guard settings.confirmsRefusals, let lane = lanes[response.lane] else { return classification }
        switch classification.verdict {
        // A delivery over an earlier path does not prove that the current one leads to the server.
        case .delivered where response.epoch >= lane.resetEpoch:
            lanes[response.lane]!.refusals.delivered()
            return classification
        case .dead(.refused, _), .dead(.redirected, _):
            guard let status = classification.status, !classification.isChosen,
                !isFinal(status, response, lane, now: now)
            else { return classification }
            return classification.unconfirmed(response.mayBeRepeated)
        case .delivered, .dead, .held, .retry: return classification
        }
    }

    private mutating func isFinal(_ status: Int, _ response: Response, _ lane: SchedulerLane, now: Moment)
        -> Bool
    {
        var refusals = lane.refusals
        if let failure = slots.lastFailure(of: lane.origin) { refusals.forgetConfirmations(before: failure) }
        defer { lanes[lane.id]!.refusals = refusals }
        return refusals.refused(
            with: status,
            after: response.previousStatus,
            began: response.began,
            delay: confirmationDelay(),
            now: now
        )
    }

    /// Returns a random delay before the attempt that confirms a refusal: twice to three times the base of the backoff.
    /// With the default base, it is longer than the three seconds for which a load balancer may respond without knowing
    /// its servers.
    mutating func confirmationDelay() -> Duration {
        let shortest = min(settings.backoff.base * 2, settings.backoff.cap)
        return random.uniform(shortest...longestConfirmationDelay)
    }

    /// The longest delay before the attempt that confirms a refusal. An attempt after it can confirm the refusal in any
    /// case.
    var longestConfirmationDelay: Duration { min(settings.backoff.base * 3, settings.backoff.cap) }
}

extension AttemptClassification {
    /// Returns the classification of a refusal that is not confirmed.
    ///
    /// - Parameter mayBeRepeated: Whether the request is retried. Otherwise it ends.
    fileprivate func unconfirmed(_ mayBeRepeated: Bool) -> AttemptClassification {
        guard mayBeRepeated else { return replaced(verdict, .unconfirmed, detail) }
        let words = (detail ?? "") + "; another attempt must confirm it before the request is given up"
        return replaced(.retry(countsAsAttempt: true), .unconfirmed, words)
    }
}

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
