// Keeps a maximum number of lanes in memory. The others are only in the store, and are loaded when they may send.

// MARK: - Loading

extension Scheduler {
    /// Loads lanes whose time has come, in place of lanes that only wait.
    ///
    /// - Returns: Whether lanes have left the memory, so that their watches are free.
    mutating func loadLanes(now: Moment, _ actions: inout [Action]) -> Bool {
        guard !isStopped, !unloaded.isEmpty else { return false }
        var (ids, hasUnloaded) = ([Int64](), false)
        while let (id, group) = unloaded.takeNext(from: groupsToLoad(now: now)) {
            let limit = limit(of: group)
            if let waiting = memory.takeYielding(to: group.submitter, in: limit, now: now) {
                unload(waiting, now: now, &actions)
                hasUnloaded = true
            }
            memory.began(for: group.submitter)
            ids.append(id)
        }
        if !ids.isEmpty { actions.append(.load(ids)) }
        return hasUnloaded
    }

    private func groupsToLoad(now: Moment) -> Set<UnloadedLanes.Group> {
        let ready = unloaded.groups.filter { group, first in
            first <= now && !hasEnoughRetries(group)
                && memory.mayBegin(for: group.submitter, in: limit(of: group), now: now)
        }
        return Set(ready.map(\.key))
    }

    /// Returns the time at which the next lane may be loaded; `nil` if there is none, or if only an event changes that.
    func nextLoad(now: Moment) -> Moment? {
        unloaded.groups.compactMap { group, first -> Moment? in
            if first > now { return first }
            if hasEnoughRetries(group) { return nil }
            return memory.firstIdle(for: group.submitter, in: limit(of: group))?.at
        }
        .filter { $0 > now }.min()
    }

    /// Returns whether enough lanes of the group's user wait in memory for a turn. Otherwise the lanes that need one would
    /// take the place of each other again and again.
    private func hasEnoughRetries(_ group: UnloadedLanes.Group) -> Bool {
        guard group.purpose == .retry else { return false }
        let submitter = group.submitter
        let count = turns.keptCount(of: submitter) + unloaded.retriesLoading(for: submitter)
        return count >= turns.keptLanes
    }

    /// Returns how many lanes may be in memory. An eighth is left for attempts that are demanded.
    private func limit(of group: UnloadedLanes.Group) -> SharedLimit {
        let all = settings.maximumLanes
        return SharedLimit(group.purpose == .demanded ? all : all - all / 8)
    }

    /// Adds lanes that were loaded.
    mutating func loaded(
        _ rows: [LaneRows],
        missing: [Int64],
        now: Moment,
        _ actions: inout [Action]
    ) {
        for rows in rows {
            // The requests that are held for `trust` are not pending.
            let isDistrusted = unloaded[rows.info.id]?.distrustedUntil != nil
            if rows.due != nil || isDistrusted {
                add(rows, now: now, &actions)
            } else {
                forgetUnloaded(rows.info.id)
            }
        }
        for lane in missing { forgetUnloaded(lane) }
    }

    /// Forgets a lane without pending requests that is not in memory.
    mutating func forgetUnloaded(_ id: Int64) {
        guard let lane = unloaded.remove(id), lane.isLoading else { return }
        memory.ended(id, for: lane.submitter)
    }
}

// MARK: - New lanes

extension Scheduler {
    /// Returns whether a lane that is not in memory may be created now: it was loaded, or it is new and need not wait
    /// behind others.
    ///
    /// - Parameter earlier: What is known of the lane; `nil` if it is new.
    func mayCreate(_ rows: LaneRows, _ earlier: UnloadedLane?, now: Moment) -> Bool {
        if let earlier { return earlier.isLoading }
        let submitter = rows.info.key.submitter
        let group = UnloadedLanes.Group(submitter: submitter, purpose: .attempt)
        guard rows.due != nil, memory.hasRoom(for: submitter, in: limit(of: group)) else { return false }
        return !unloaded.isAwaited(for: submitter, now: now)
    }

    /// Records that a lane that is not in memory has requests.
    mutating func addUnloaded(_ rows: LaneRows, _ earlier: UnloadedLane?, now: Moment) {
        guard let due = rows.due else { return }
        var lane = earlier ?? new(rows.info, now: now)
        lane.rowsAreDue(at: due)
        if rows.isRequested { lane.properties.insert(.isRequested) }
        if rows.isFlushed { lane.force(now: now) }
        let isFirst = unloaded.isEmpty
        unloaded.set(rows.info.id, lane)
        guard isFirst else { return }
        for id in lanes.keys.sorted() { updateUnloading(id, now: now) }
    }

    private func new(_ info: LaneInfo, now: Moment) -> UnloadedLane {
        var lane = UnloadedLane(submitter: info.key.submitter, loadsAt: .never)
        if slots.lastStanding(of: info.origin) == .prompt { lane.properties.insert(.hasResponded) }
        if let notBefore = info.notBefore, notBefore > now {
            lane.loadsAt = notBefore
            lane.properties.insert(.isClosed)
        }
        return lane
    }

    /// Gives a lane that was loaded what the scheduler remembers of it.
    mutating func restore(_ id: Int64, _ earlier: UnloadedLane) {
        unloaded.remove(id)
        let properties = earlier.properties
        lanes[id]!.closures = Int(earlier.closures)
        lanes[id]!.isHalfOpen = earlier.closures > 0
        lanes[id]!.isHeld = properties.contains(.isHeld)
        lanes[id]!.isForced = properties.contains(.isForced)
        lanes[id]!.isRequested = properties.contains(.isRequested)
        lanes[id]!.distrustedUntil = earlier.distrustedUntil
        lanes[id]!.lastTry = earlier.lastSignOfOutage
        if properties.contains(.releasesTrust) { lanes[id]!.releasing = [.trust] }
        if properties.contains(.releasesAll) { lanes[id]!.releasing = Self.releasedByFlush }
        guard properties.contains(.isUnanswered) else { return }
        lanes[id]!.isUnanswered = true
        unansweredLanes[lanes[id]!.origin, default: []].insert(id)
    }

    /// Returns the gate of an endpoint whose lane was in memory before; `nil` if it was not.
    func gate(of lane: UnloadedLane, now: Moment) -> Gate? {
        guard lane.properties.contains(.wasLoaded) else { return nil }
        var gate = Gate(since: lane.lastSignOfOutage ?? now)
        gate.earlier = unloaded.reason(of: lane).map { .down($0) } ?? .notDown
        return gate
    }
}

// MARK: - Unloading

extension Scheduler {
    /// Records whether a lane may leave the memory. Must be called after every change of the lane.
    mutating func updateUnloading(_ id: Int64, now: Moment) {
        guard !unloaded.isEmpty else { return }
        let lane = lanes[id]!
        let submitter = lane.key.submitter
        guard let from = mayBeUnloadedFrom(lane, now: now) else {
            return memory.setYield(id, for: submitter, from: nil)
        }
        if !memory.mayYield(id, for: submitter) { memory.setYield(id, for: submitter, from: from) }
    }

    /// Returns the time from which a lane may leave the memory; `nil` if it needs to stay.
    ///
    /// A lane stays while it has requests in flight, or waits for something other than a time or a path. Of the lanes that
    /// wait for a turn, some stay.
    private func mayBeUnloadedFrom(_ lane: SchedulerLane, now: Moment) -> Moment? {
        guard lane.inflight == 0, !lane.isClaiming, !lane.hasTurn else { return nil }
        guard !slots.isWaiting(lane.id, of: lane.origin), !watches.contains(lane.id),
            !turns.keeps(lane.id)
        else { return nil }
        let gate = gates[lane.endpoint]!
        guard gate.portal.running == nil else { return nil }
        // A watch that has found no path may find one until it has lasted for this time.
        guard let watch = gate.watch, gate.state?.generation == nil else { return now }
        return max(now, watch.since + settings.watchIdleTime)
    }

    /// Removes a lane from memory. It remains in the store.
    private mutating func unload(_ id: Int64, now: Moment, _ actions: inout [Action]) {
        let lane = lanes[id]!
        let summary = summary(of: lane, now: now)
        remove(lane, now: now, &actions)
        unloaded.set(id, summary)
    }

    private mutating func summary(of lane: SchedulerLane, now: Moment) -> UnloadedLane {
        var summary = UnloadedLane(
            submitter: lane.key.submitter,
            loadsAt: loadTime(of: lane, now: now),
            properties(of: lane, now: now)
        )
        summary.setClosures(lane.closures)
        if let gate = gates[lane.endpoint], let reason = gate.downReason {
            unloaded.setOutage(reason, lastSign: max(gate.since, lane.lastTry ?? .zero), of: &summary)
        }
        return summary
    }

    /// Returns when a lane is loaded again. A lane without a path is loaded to look for one. No lane is loaded at once, so
    /// that lanes do not take the place of each other in the same moment.
    private func loadTime(of lane: SchedulerLane, now: Moment) -> Moment {
        if lane.isHeld { return .never }
        let earliest = now + (awaitsPath(lane, now: now) ? settings.watchIdleTime : .seconds(1))
        let window = constraints(of: lane, now: now).isMet ? nil : constraints(of: lane, now: now).until
        let opening = awaitsPath(lane, now: now) ? ownOpening(of: lane) : opening(of: lane)
        return [earliest, lane.due, opening, window].compactMap(\.self).max()!
    }

    private func awaitsPath(_ lane: SchedulerLane, now: Moment) -> Bool {
        if seemsDown(lane.endpoint) { return !lane.isForced }
        if case .unmet(_, nil) = constraints(of: lane, now: now) { return true }
        return false
    }

    private func properties(of lane: SchedulerLane, now: Moment) -> UnloadedLane.Properties {
        var properties: UnloadedLane.Properties = .wasLoaded
        func set(_ property: UnloadedLane.Properties, _ isSet: Bool) {
            if isSet { properties.insert(property) }
        }
        set(.isClosed, ownOpening(of: lane).map { $0 > now } ?? false)
        set(.awaitsPath, awaitsPath(lane, now: now))
        set(.isUnanswered, lane.isUnanswered)
        set(.isHeld, lane.isHeld)
        set(.isForced, lane.isForced)
        set(.isRequested, lane.isRequested)
        set(.isDistrusted, lane.distrustedUntil != nil)
        set(.releasesTrust, lane.releasing?.isEmpty == false)
        set(.releasesAll, lane.releasing?.contains(.auth) == true)
        set(.hasResponded, slots.standing(of: lane.origin) == .prompt)
        return properties
    }

    /// Returns why a lane waits that is not in memory.
    func reasonToBeUnloaded(_ lane: UnloadedLane, now: Moment) -> QueuedReason? {
        if let reason = unloaded.reason(of: lane) { return .notReachable(reason) }
        if !lane.properties.isDisjoint(with: [.isClosed, .isHeld, .isUnanswered]) { return .laneClosed }
        return lane.loadsAt > now ? nil : .noFreeSlot
    }
}
