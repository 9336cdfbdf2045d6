package import NetwatchEventLoop

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
