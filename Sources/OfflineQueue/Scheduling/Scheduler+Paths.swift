package import NetwatchEventLoop
internal import NetworkReachability

// Ends or repeats attempts when the path to their endpoint is lost or found.

extension Scheduler {
    /// Handles an endpoint that becomes reachable: for the first time, after a loss, or over another path.
    mutating func pathFound(
        _ endpoint: Endpoint,
        _ route: UInt64?,
        after old: Gate,
        now: Moment,
        _ actions: inout [Action]
    ) {
        gates[endpoint]!.route = route
        if old.route == nil, old.state == nil || old.state == .unknown {
            return firstPathFound(endpoint, &actions)
        }
        actions.append(.dropConnections)
        pathReturned(to: endpoint, now: now)
        if let route, route == old.route {
            // The same path returned, so connections over it may have survived, and its grace period ends. Losses of
            // earlier paths remain.
            setLosses(of: endpoint, old.losses.filter { $0.foundAt != nil })
        } else {
            // The response to an attempt that must not be repeated may still arrive, so such an attempt gets a grace
            // period. If no earlier path is known, the attempts may already use the new path.
            if old.route != nil { startGrace(endpoint, now: now) }
            anotherIsFound(endpoint, now: now)
            actions.append(.abort(endpoint))
        }
        // An attempt that starts again would use a path that was not probed for portals.
        actions.append(isChecked(endpoint) ? .abort(endpoint) : .restartStalled(endpoint))
    }

    private func isChecked(_ endpoint: Endpoint) -> Bool {
        gates[endpoint]!.lanes.contains { isChecked(lanes[$0]!.origin) }
    }

    /// Starts the time in which failures are expected, because addresses or names do not work yet.
    mutating func pathReturned(to endpoint: Endpoint, now: Moment) {
        lastReconnectEnds = now + settings.reconnectTime
        gates[endpoint]!.reconnectsUntil = lastReconnectEnds
    }

    /// Handles the first known path to an endpoint, for example when a slow name server has answered. Idle connections
    /// stay open, so that requests can reuse them. The session itself watches the paths of its connections.
    ///
    /// Attempts that began before continue: the kernel has chosen their path, and nothing shows that it has changed.
    private func firstPathFound(_ endpoint: Endpoint, _ actions: inout [Action]) {
        if isSending(to: endpoint), !isChecked(endpoint) { actions.append(.restartStalled(endpoint)) }
    }

    private func isSending(to endpoint: Endpoint) -> Bool {
        gates[endpoint]!.lanes.contains { lanes[$0]!.inflight > 0 }
    }

    /// Starts the grace period of attempts over a path that was lost or replaced. A grace period that already runs for
    /// the same loss continues unchanged.
    mutating func startGrace(_ endpoint: Endpoint, now: Moment) {
        let losses = gates[endpoint]!.losses
        guard losses.last.map({ $0.foundAt != nil }) ?? true, isSending(to: endpoint) else { return }
        setLosses(of: endpoint, losses + [Loss(at: now)])
    }

    /// Records when another path replaced the lost one. Attempts that began later use the new path.
    private mutating func anotherIsFound(_ endpoint: Endpoint, now: Moment) {
        guard let last = gates[endpoint]!.losses.indices.last, gates[endpoint]!.losses[last].foundAt == nil
        else {
            return
        }
        gates[endpoint]!.losses[last].foundAt = now
    }

    /// Sets the losses of an endpoint, and schedules the end of the first grace period.
    mutating func setLosses(of endpoint: Endpoint, _ losses: [Loss]) {
        gates[endpoint]!.losses = losses
        graces.set(endpoint, to: losses.first.map { $0.at + settings.lossGrace })
    }

    /// Ends the grace periods that are over at the given time.
    mutating func endGraces(until moment: Moment, now: Moment, _ actions: inout [Action]) {
        while let endpoint = graces.removeFirst(until: moment) {
            guard let losses = gates[endpoint]?.losses, let loss = losses.first else { continue }
            actions.append(.endLost(endpoint, begunBefore: loss.foundAt ?? now))
            setLosses(of: endpoint, Array(losses.dropFirst()))
        }
    }

    /// Returns whether a failure to connect is retried fast and is not counted as an attempt.
    ///
    /// The kernel may refuse a connection although there is a route, because the neighbour does not respond yet, or
    /// because the route returned only recently. The first path error after a success therefore starts a period of fast
    /// retries (``Settings/reconnectTime``).
    ///
    /// - Parameter isPathError: Whether the error number is one of the kernel's errors for a missing path.
    package mutating func isReconnecting(lane id: Int64, isPathError: Bool, now: Moment) -> Bool {
        guard let lane = lanes[id] else { return false }
        if isPathError, lane.reconnectsUntil == nil {
            lanes[id]!.reconnectsUntil = now + settings.reconnectTime
        }
        let ends = [gates[lane.endpoint]?.reconnectsUntil, lanes[id]!.reconnectsUntil]
        return ends.contains { $0.map { now < $0 } == true }
    }

    /// Returns whether the lane is closed because this machine is short of descriptors, memory, threads or ports.
    package func isShort(lane id: Int64, now: Moment) -> Bool {
        guard let lane = lanes[id] else { return false }
        return lane.shortages > 0 && now < lane.closedUntil
    }
}

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

// Limits what a queue sends when a host becomes reachable again, so that neither its requests nor those of other queues
// arrive all at once.

extension Scheduler {
    /// Handles a change of an endpoint's gate: after an outage, each lane sends a canary, and the origins of the
    /// endpoint join the ramp. The first state of a gate does not indicate an outage.
    mutating func reconnect(_ endpoint: Endpoint, _ old: GateState?, _ new: GateState, now: Moment) {
        guard old != nil else { return }
        switch (old, new) {
        // A name that could not be looked up during the outage is unknown until its lookup ends.
        case (_, .reachable), (.down?, .unknown):
            if case .down? = old { gates[endpoint]!.opensAt = drawSpread(now: now) }
            for id in gates[endpoint]!.lanes.sorted() { lanes[id]!.beginAfterOutage(now: now) }
            for origin in origins(of: endpoint) { slots.reconnected(origin, now: now) }
            // Hosts without lanes may not be watched, but they may have lost the same link.
            slots.recent.forgetFailures()
        case (_, .down): for origin in origins(of: endpoint) { slots.leaveRamp(origin) }
        case (_, .unknown): break
        }
    }

    /// Returns the time until which requests wait after an outage. Hosts that become reachable while requests wait get
    /// the same time, because one link may connect all of them.
    mutating func drawSpread(now: Moment) -> Moment {
        guard settings.reconnectSpread > .zero else { return .zero }
        if spreadEnd <= now { spreadEnd = now + random.uniform(.zero...settings.reconnectSpread) }
        return spreadEnd
    }

    /// Returns how many retries a claim may take; `nil` for no limit. The budget does not apply to the single request
    /// with which a lane finds out whether its server can be reached. A flush and a release permit one retry in any
    /// case.
    mutating func allowance(of lane: SchedulerLane, limit: Int, now: Moment) -> RetryAllowance? {
        guard lane.canary == nil, !isProbing(lane) else { return nil }
        return slots.reserveRetries(limit, atLeast: lane.isRequested ? 1 : 0, of: lane.origin, now: now)
    }

    mutating func record(_ use: RetryUse, ofLane id: Int64, now: Moment) {
        guard let lane = lanes[id] else { return }
        if let delay = use.postponement {
            lanes[id]!.retriesPostponedUntil = max(lane.retriesPostponedUntil, now + delay)
        }
        slots.record(use, of: lane.origin, now: now)
    }

    private func origins(of endpoint: Endpoint) -> [Origin] {
        origins(of: gates[endpoint]!.lanes.sorted())
    }

    /// Returns the origins of lanes, each once, in the order of the lanes, so that a run can be replayed.
    func origins(of ids: [Int64]) -> [Origin] {
        var known: Set<Origin> = []
        return ids.map { lanes[$0]!.origin }.filter { known.insert($0).inserted }
    }
}

// Lets lanes wait while the constraints of their requests are not met, and ends attempts when one is lost.

extension Scheduler {
    /// Whether the constraints of a lane are met now.
    enum ConstraintState: Hashable {
        /// They are met, until this time if it is not `nil`.
        case met(until: Moment?)
        /// One is not met. It may be met from this time; `nil` if only a change of the path can change that.
        case unmet(UnmetConstraint, until: Moment?)

        var isMet: Bool { if case .met = self { true } else { false } }

        var until: Moment? {
            switch self {
            case .met(let until), .unmet(_, let until): until
            }
        }
    }

    /// The maximum time between two checks of a window. The wall clock may be set, or the zone's offset may change, at
    /// any time, and no event reports that. Lanes without a window are not checked.
    private static let windowCheck: Duration = .seconds(60)

    /// Records the time of the wall clock. The windows are evaluated with it.
    package mutating func setWall(_ wall: Timestamp, now: Moment) {
        wallAtStart = wall - now
    }

    /// Returns whether the constraints of a lane are met. A closed window precedes a constraint of the interface,
    /// because no change of the path makes the queue send a request while its window is closed.
    func constraints(of lane: SchedulerLane, now: Moment) -> ConstraintState {
        var until: Moment?
        if let window = lane.constraints.window {
            let state = window.state(at: wallAtStart + now)
            until = now + min(state.change, Self.windowCheck)
            guard state.isOpen else { return .unmet(.window(window), until: until) }
        }
        if let unmet = lane.constraints.unmet(by: gates[lane.endpoint]?.interface) {
            return .unmet(unmet, until: nil)
        }
        return .met(until: until)
    }

    /// Returns the interface and source address that the attempts of a lane must use: those that meet the constraints.
    /// Otherwise another address of the host might connect over another interface. Returns `nil` if no constraint
    /// concerns the interface.
    package func binding(lane id: Int64) -> SocketBinding? {
        guard let lane = lanes[id], lane.constraints.concernInterface else { return nil }
        return gates[lane.endpoint]?.interface?.binding
    }

    /// Schedules the next check of a window while requests are in flight. It needs no slot, so it is not in
    /// ``timetable``, which waits while all slots are in use.
    mutating func scheduleWindowEnd(_ lane: SchedulerLane, _ state: ConstraintState) {
        windowEnds.set(lane.id, to: lane.inflight > 0 && state.isMet ? state.until : nil)
    }

    /// Checks the windows whose time has come.
    mutating func checkWindows(now: Moment, _ actions: inout [Action]) {
        while let id = windowEnds.removeFirst(until: now) {
            interruptIfUnmet(id, now: now, &actions)
            schedule(id, now: now)
        }
    }

    /// Ends the attempts of a lane whose constraints are no longer met.
    mutating func interruptIfUnmet(_ id: Int64, now: Moment, _ actions: inout [Action]) {
        guard let lane = lanes[id], lane.inflight > 0, mustEnd(lane, now: now) else { return }
        actions.append(.interrupt(lane: id))
    }

    /// Whether a constraint forbids the attempts of a lane to continue.
    ///
    /// A constraint of the interface does so only if the interface is known. After a loss of the path, the grace period
    /// decides instead, because nothing is sent. An unknown state does not prove that the path has changed.
    func mustEnd(_ lane: SchedulerLane, now: Moment) -> Bool {
        switch constraints(of: lane, now: now) {
        case .met: false
        case .unmet(.window, _): true
        case .unmet: gates[lane.endpoint]?.interface != nil
        }
    }
}

extension Scheduler.Gate {
    /// The interface of the path; `nil` if there is no path or its interface is not known.
    var interface: PathInterface? {
        if case .reachable(_, _, let interface)? = state { interface } else { nil }
    }
}
