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
