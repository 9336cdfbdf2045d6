package import NetwatchEventLoop

// Tries held requests again whose cause may have passed: of lanes whose server was not trusted, and of credentials that a
// server rejected.

extension Scheduler {
    /// Held requests that are tried again at the same time.
    enum HeldGroup: Hashable, Comparable, Sendable {
        /// The requests of a lane whose server was not trusted.
        case lane(Int64)
        /// The requests that a server rejected because of a credential.
        case credential(CredentialScope)
        /// The requests of the credentials that have no times of their own (``AuthRetries/maximumScopes``).
        case otherCredentials
    }

    /// Tries the held requests whose time has come.
    mutating func tryHeld(now: Moment, _ actions: inout [Action]) {
        guard !isStopped else { return }
        while let group = heldTimes.removeFirst(until: now) {
            switch group {
            case .lane(let id):
                releaseDistrusted(id, now: now)
                schedule(id, now: now)
            case .credential(let scope):
                order(auth.nextCame(scope, now: now, &random), &actions)
                setTime(of: scope)
            case .otherCredentials:
                order(auth.nextOfOthersCame(now: now, &random), &actions)
                heldTimes.set(.otherCredentials, to: auth.nextOfOthers)
            }
        }
    }

    private mutating func releaseDistrusted(_ id: Int64, now: Moment) {
        guard let until = lanes[id]?.distrustedUntil, until <= now else { return }
        lanes[id]!.distrustedUntil = nil
        lanes[id]!.releasing = (lanes[id]!.releasing ?? []).union([.trust])
        lanes[id]!.rowsAreDue(at: now)
    }

    private func order(_ release: HeldRelease?, _ actions: inout [Action]) {
        if let release, !isStopped { actions.append(.release(release)) }
    }

    private mutating func setTime(of scope: CredentialScope) {
        heldTimes.set(.credential(scope), to: auth.next(scope))
        heldTimes.set(.otherCredentials, to: auth.nextOfOthers)
    }

    /// Returns when held requests are tried next: those of a lane whose server is not trusted, or one of those with a
    /// credential. Returns `nil` for other reasons, and if it is not known.
    ///
    /// - Parameter scope: Returns the scope of the request's credential.
    package func nextTry(ofHeld reason: HoldReason, lane: Int64?, _ scope: () -> CredentialScope?) -> Moment?
    {
        switch reason {
        case .trust: lane.flatMap { lanes[$0]?.distrustedUntil ?? unloaded[$0]?.distrustedUntil }
        case .auth: auth.isEmpty ? nil : scope().flatMap { auth.next($0) } ?? auth.nextOfOthers
        case .configuration, .ambiguous, .user, .dependency, .key: nil
        }
    }
}

// MARK: - Credentials

extension Scheduler {
    /// Whether requests are held because a server rejected their credentials.
    package var hasRejectedCredentials: Bool { !auth.isEmpty }

    mutating func credentialRejected(
        _ scope: CredentialScope,
        _ request: Int64,
        began: Moment,
        now: Moment,
        _ actions: inout [Action]
    ) {
        order(auth.rejected(scope, request, began: began, now: now, &random), &actions)
        setTime(of: scope)
    }

    mutating func credentialAccepted(
        _ scope: CredentialScope,
        _ request: Int64,
        began: Moment,
        now: Moment,
        _ actions: inout [Action]
    ) {
        order(auth.accepted(scope, request, began: began, now: now, &random), &actions)
        setTime(of: scope)
    }

    mutating func released(_ release: HeldRelease, _ requests: ReleasedRequests) {
        auth.released(release, requests)
        switch release {
        case .next(let scope, _), .all(let scope): setTime(of: scope)
        case .lanes: heldTimes.set(.otherCredentials, to: auth.nextOfOthers)
        }
    }

    /// Starts the times of rejected credentials again: of those with these names, or to the hosts of a flush.
    mutating func restartCredentials(now: Moment, where isChanged: (CredentialScope) -> Bool) {
        for scope in auth.restart(now: now, &random, where: isChanged) { setTime(of: scope) }
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
