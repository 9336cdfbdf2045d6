// Keeps a maximum number of lanes in memory. The others are only in the store, and are loaded when they may send.

// MARK: - Loading

extension Scheduler {
    /// Loads lanes whose time has come. If there is no room, lanes that only wait leave the memory.
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
        guard group.purpose.isRetry else { return false }
        let submitter = group.submitter
        return turns.keptCount(of: submitter) + unloaded.retriesLoading(for: submitter) >= turns.keptLanes
    }

    /// Returns how many lanes may be in memory. An eighth is left for attempts that are demanded, and half of that for
    /// hosts that have responded.
    private func limit(of group: UnloadedLanes.Group) -> SharedLimit {
        let all = settings.maximumLanes
        return switch group.purpose {
        case .known: SharedLimit(all)
        case .demanded: SharedLimit(all - all / 16)
        case .attempt, .retry, .look: SharedLimit(all - all / 8)
        }
    }

    /// Adds lanes that were loaded.
    mutating func loaded(
        _ rows: [LaneRows],
        missing: [Int64],
        now: Moment,
        _ actions: inout [Action]
    ) {
        for rows in rows {
            // The requests that a claim of the lane would release are not pending.
            if rows.due != nil || unloaded[rows.info.id]?.releases == true {
                add(rows, now: now, &actions)
            } else {
                forgetLoading(rows.info.id)
            }
        }
        for lane in missing { forgetLoading(lane) }
    }

    /// Forgets a lane that had no pending requests when it was read. If it has got one since, it is not being loaded any
    /// more, or its rows follow.
    private mutating func forgetLoading(_ id: Int64) {
        guard let lane = unloaded[id], lane.isLoading else { return }
        unloaded.remove(id)
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
        guard rows.due != nil || earlier != nil else { return }
        var lane = earlier ?? new(rows.info, now: now)
        if let due = rows.due { lane.rowsAreDue(at: due) }
        if rows.isRequested { lane.properties.insert(.isRequested) }
        // A paused lane is flushed, too, so that nothing delays it when it is resumed.
        if rows.flushedAt != nil { lane.force(now: now) }
        unloaded.set(rows.info.id, lane)
        guard !isMemoryContended else { return }
        isMemoryContended = true
        for id in lanes.keys.sorted() { updateUnloading(id, now: now) }
    }

    private func new(_ info: LaneInfo, now: Moment) -> UnloadedLane {
        var lane = UnloadedLane(submitter: info.key.submitter, loadsAt: .never)
        lane.properties.formUnion(.init(slots.lastStanding(of: info.origin)))
        if let notBefore = info.notBefore, notBefore > now {
            lane.loadsAt = notBefore
            lane.properties.insert(.isClosed)
        }
        return lane
    }

    /// Gives a lane that was loaded what the scheduler remembers of it.
    mutating func restore(_ id: Int64, _ earlier: UnloadedLane, now: Moment) {
        unloaded.remove(id)
        let properties = earlier.properties
        let origin = lanes[id]!.origin
        lanes[id]!.closures = Int(earlier.closures)
        lanes[id]!.isHalfOpen = earlier.closures > 0
        lanes[id]!.isHeld = properties.contains(.isHeld)
        lanes[id]!.isForced = properties.contains(.isForced)
        lanes[id]!.isRequested = properties.contains(.isRequested)
        lanes[id]!.distrustedUntil = earlier.distrustedUntil
        restoreReleases(id, properties, now: now)
        if slots.standing(of: origin) == .new { slots.setStanding(properties.standing, of: origin) }
        guard properties.contains(.wasLoaded) else { return }
        lanes[id]!.lastTry = earlier.lastSignOfOutage ?? .zero
        guard properties.contains(.isUnanswered) else { return }
        lanes[id]!.reconnectsUntil = now
        lanes[id]!.isUnanswered = true
        unansweredLanes[origin, default: []].insert(id)
    }

    private mutating func restoreReleases(_ id: Int64, _ properties: UnloadedLane.Properties, now: Moment) {
        guard properties.contains(.makesDue) || properties.contains(.releasesAll) else { return }
        lanes[id]!.releasing = properties.contains(.releasesTrust) ? [.trust] : []
        if properties.contains(.releasesAll) { lanes[id]!.releasing = Self.releasedByFlush }
        lanes[id]!.rowsAreDue(at: now)
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
        guard isMemoryContended else { return }
        let lane = lanes[id]!
        let submitter = lane.key.submitter
        guard let from = mayBeUnloadedFrom(lane, now: now) else {
            return memory.setYield(id, for: submitter, from: nil)
        }
        if !memory.mayYield(id, for: submitter) { memory.setYield(id, for: submitter, from: from) }
    }

    /// Returns the time from which a lane may leave the memory; `nil` if it needs to stay.
    ///
    /// A lane stays while it has requests in flight, while an attempt is about to confirm a refusal that has closed it, while
    /// this machine is short of a resource, and while the lane waits for a slot or a watch. Of the lanes that wait for a
    /// turn, some stay. A lane with its turn stays for ``Settings/watchIdleTime``: then its origin has no slot for it, or all
    /// slots are in use by silent hosts, which keep them for long. It loses its turn when it leaves.
    private func mayBeUnloadedFrom(_ lane: SchedulerLane, now: Moment) -> Moment? {
        guard lane.inflight == 0, !lane.isClaiming, lane.shortages == 0 else { return nil }
        if lane.hasTurn { return now + settings.watchIdleTime }
        guard !slots.isWaiting(lane.id, of: lane.origin), !watches.contains(lane.id),
            !turns.keeps(lane.id)
        else { return nil }
        let gate = gates[lane.endpoint]!
        guard gate.portal.running == nil else { return nil }
        if let end = lane.refusals.closedUntil, now < end + Self.confirmation {
            return end + Self.confirmation
        }
        // A watch that has not found the path that the lane needs may find it until it has lasted for this time.
        guard let watch = gate.watch, gate.state?.generation == nil || awaitsPath(lane, now: now) else {
            return now
        }
        return max(now, watch.since + settings.watchIdleTime)
    }

    /// How long a lane waits in memory for an attempt that confirms a refusal.
    private static let confirmation: Duration = .seconds(60)

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

    /// Returns when a lane is loaded again. A lane without a path is loaded to look for one, before the longest backoff
    /// ends. No lane is loaded at once, so that lanes do not take the place of each other in the same moment.
    private func loadTime(of lane: SchedulerLane, now: Moment) -> Moment {
        if lane.isHeld { return .never }
        let opening = seemsDown(lane.endpoint) ? ownOpening(of: lane)! : opening(of: lane)!
        let earliest = max(now + pause(of: lane, now: now), opening, windowOpening(of: lane, now: now))
        // A new request may be due earlier than the others. It must not wait for them after the lane is open.
        return isClosed(lane, now: now) ? earliest : max(earliest, lane.due ?? .zero)
    }

    /// Returns the minimum time for which a lane is not in memory.
    private func pause(of lane: SchedulerLane, now: Moment) -> Duration {
        guard awaitsPath(lane, now: now) else { return .seconds(1) }
        return seemsDown(lane.endpoint) ? settings.watchIdleTime : .seconds(60)
    }

    /// Returns when the window of a lane opens. It is checked again after an hour, because the wall clock may be set.
    private func windowOpening(of lane: SchedulerLane, now: Moment) -> Moment {
        guard case .unmet(.window(let window), _) = constraints(of: lane, now: now) else { return now }
        return now + min(window.state(at: wallAtStart + now).change, .seconds(3600))
    }

    private func isClosed(_ lane: SchedulerLane, now: Moment) -> Bool {
        ownOpening(of: lane).map { $0 > now } ?? false
    }

    /// Returns whether a lane whose requests are due waits for a path, for an interface that meets its constraints, or for
    /// the end of a captive portal.
    private func awaitsPath(_ lane: SchedulerLane, now: Moment) -> Bool {
        guard let due = lane.due, due <= now else { return false }
        let constraints = constraints(of: lane, now: now)
        if case .unmet(.window, _) = constraints { return false }
        if seemsDown(lane.endpoint) { return !lane.isForced || !constraints.isMet }
        // Without a watch, the interface is not known, and neither is a portal.
        guard !needsTurn(lane), let gate = gates[lane.endpoint], gate.state?.generation != nil else {
            return false
        }
        return !constraints.isMet || isChecked(lane.origin) && gate.portal.portal != nil
    }

    private func properties(of lane: SchedulerLane, now: Moment) -> UnloadedLane.Properties {
        var properties: UnloadedLane.Properties = .wasLoaded
        func set(_ property: UnloadedLane.Properties, _ isSet: Bool) {
            if isSet { properties.insert(property) }
        }
        let isClosed = isClosed(lane, now: now)
        set(.isClosed, isClosed)
        set(.awaitsPath, awaitsPath(lane, now: now))
        // The fast retries after a path error do not begin again with each load.
        set(.isUnanswered, lane.isUnanswered || lane.reconnects > 0 || lane.reconnectsUntil != nil)
        set(.isHeld, lane.isHeld)
        // After a closure, the state of the gate counts again, because its changes are not noticed meanwhile.
        set(.isForced, lane.isForced && !isClosed)
        set(.isRequested, lane.isRequested)
        set(.isDistrusted, lane.distrustedUntil != nil && !lane.isHeld)
        set(.makesDue, lane.releasing != nil)
        set(.releasesTrust, lane.releasing?.contains(.trust) == true)
        set(.releasesAll, lane.releasing?.contains(.auth) == true)
        return properties.union(.init(slots.standing(of: lane.origin)))
    }

    /// Returns why a lane waits that is not in memory.
    func reasonToBeUnloaded(_ lane: UnloadedLane) -> QueuedReason {
        if let reason = unloaded.reason(of: lane) { return .notReachable(reason) }
        if !lane.properties.isDisjoint(with: [.isClosed, .isHeld, .isUnanswered]) { return .laneClosed }
        return .noFreeSlot
    }
}
