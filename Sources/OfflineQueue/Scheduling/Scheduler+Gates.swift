internal import NetworkReachability

// What the scheduler knows about the paths to endpoints.

extension Scheduler {
    /// The scheduler's state of an endpoint.
    struct Gate: Sendable {
        /// The current watch; `nil` if the endpoint is not watched.
        var watch: Watch?
        /// The last state that the current watch has reported; `nil` before the first one.
        var state: GateState?
        /// When the last watch ended; `nil` if none did.
        var unwatchedSince: Moment?
        /// What earlier watches have reported, until the current one reports a state other than `unknown`; `nil` if none
        /// did.
        var earlier: EarlierState?
        /// Whether the current watch has reported a state other than `unknown`.
        var isKnown = false
        /// The time of the last change of the state, or the time at which the endpoint got its first lane. A change of the
        /// reason why there is no path does not count, nor does the time without a watch.
        var since: Moment
        /// The lanes whose requests go to the endpoint.
        var lanes: Set<Int64> = []
        /// The number of lanes that use the watch (``SchedulerLane/usesWatch``).
        var users = 0
        /// The endpoint's last known path (the route of ``GateState``); `nil` if it is not known.
        var route: UInt64?
        /// The time until which failures to connect are retried fast.
        var reconnectsUntil: Moment = .zero
        /// The time until which requests wait after an outage (``Settings/reconnectSpread``).
        var opensAt: Moment = .zero
        /// The paths that were lost or replaced while attempts used them, the earliest first. Each has its own grace
        /// period.
        var losses: [Loss] = []
        /// What is known about captive portals on the path.
        var portal = PortalCheck()
    }

    /// A watch of an endpoint.
    struct Watch: Sendable {
        /// When it began.
        let since: Moment
        /// The user whose share contains it.
        let submitter: UInt32?
    }

    /// What remains of the states of a watch that has ended. The generations of paths and routes do not remain, because
    /// each watch counts its own.
    enum EarlierState: Hashable, Sendable {
        case down(PathStatus.Reason)
        case notDown
    }

    /// A path that was lost or replaced.
    struct Loss: Sendable {
        /// When the path was lost or replaced.
        let at: Moment
        /// When another path was found; `nil` if none was. Attempts that began after this time do not use the lost
        /// path.
        var foundAt: Moment?
    }
}

extension Scheduler.Gate {
    /// Why there is no path, according to the current watch or, while it has reported nothing, to the one before; `nil` if
    /// there is a path, or if that is not known.
    var downReason: PathStatus.Reason? {
        switch (state, earlier) {
        case (.down(let reason)?, _), (nil, .down(let reason)?): reason
        case (.reachable?, _), (.unknown?, _), (nil, .notDown?), (nil, nil): nil
        }
    }

    mutating func report(_ new: GateState) {
        state = new
        if new != .unknown { isKnown = true }
    }

    /// Ends the watch. Only whether there was a path remains.
    mutating func endWatch(now: Moment) {
        switch state {
        case .down(let reason)?: earlier = .down(reason)
        case .reachable?: earlier = .notDown
        case .unknown?: earlier = earlier ?? .notDown
        case nil: break
        }
        (watch, state, route, isKnown) = (nil, nil, nil, false)
        unwatchedSince = now
        portal.reset()
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
