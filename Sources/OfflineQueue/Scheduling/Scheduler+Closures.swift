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

// Replaces the settings while requests wait and are in flight.

extension Scheduler {
    /// Replaces the settings and schedules all lanes again. Only the settings that ``OfflineQueue/use(_:)`` replaces
    /// may differ.
    mutating func use(_ settings: Settings, now: Moment) {
        self.settings = settings
        slots.use(OriginSlots.Limits(settings))
        // The order must not depend on hash seeds, so that a run can be replayed.
        for id in lanes.keys.sorted() { schedule(id, now: now) }
    }
}

extension OriginSlots.Limits {
    init(_ settings: Scheduler.Settings) {
        self.init(
            total: settings.inflight,
            perOrigin: settings.inflightPerOrigin,
            reserved: settings.reserved,
            rampStart: settings.rampStart,
            rampDuration: settings.rampDuration,
            windowDecrease: settings.windowDecrease,
            retries: RetryBudget.Limits(share: settings.retryShare, rate: settings.retryRate),
            rates: settings.rates,
            hostWeights: settings.hostWeights
        )
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

// Lets lanes of plain HTTP wait until their path was probed for captive portals.

extension Scheduler {
    /// The number of endpoints without lanes whose paths stay watched, so that a probe's result stays valid until the
    /// next request to the endpoint.
    private static let maximumIdleEndpoints = 64

    /// Whether the lane's requests may be intercepted by a portal, and a probe is configured. Over HTTPS a portal
    /// cannot prove to be the server.
    func isChecked(_ origin: Origin) -> Bool { settings.checksPortals && origin.scheme == "http" }

    /// Returns whether no known portal, and no missing probe, prevents the lane from sending. Requests a probe if one
    /// is due.
    mutating func passesPortalCheck(_ lane: SchedulerLane, now: Moment) -> Bool {
        guard isChecked(lane.origin), let check = gates[lane.endpoint]?.portal else { return true }
        if check.needsProbe(now: now) {
            lastProbe += 1
            gates[lane.endpoint]!.portal.begin(lastProbe)
            wantedProbes.append(.probePortal(lane.endpoint, probe: lastProbe))
        }
        return check.permitsSending
    }

    /// Returns whether a claimed request may be sent. Since the claim, the path may have changed without having been
    /// probed again, or a portal may have been found.
    package func mayStillSend(lane id: Int64, now: Moment) -> Bool {
        guard let lane = lanes[id], let gate = gates[lane.endpoint] else { return true }
        guard constraints(of: lane, now: now).isMet else { return false }
        return !isChecked(lane.origin) || gate.portal.permitsSending
    }

    /// Returns the time at which a lane that waits because of a portal must be scheduled again; `nil` if the end of the
    /// running probe does that.
    func portalWake(_ lane: SchedulerLane) -> Moment? {
        guard let check = gates[lane.endpoint]?.portal, check.running == nil else { return nil }
        return check.nextProbe
    }

    /// Returns the reason `captivePortal` if the lane waits because of a portal; `nil` if no portal is known.
    func portalReason(_ lane: SchedulerLane) -> QueuedReason? {
        guard isChecked(lane.origin), let page = gates[lane.endpoint]?.portal.portal else { return nil }
        return .captivePortal(page: page)
    }

    /// Handles the result of a probe. When a portal is gone, the path is as good as new: the lanes that could not send
    /// through the portal are tried immediately, each with a canary.
    mutating func portalProbed(_ endpoint: Endpoint, _ probe: Int, _ finding: PortalFinding, now: Moment) {
        guard let gate = gates[endpoint], gate.portal.running == probe else { return }
        let isGone = gate.portal.portal != nil && finding == .clear
        if finding == .failed, now < gate.reconnectsUntil {
            // Directly after an outage a probe fails for the same reasons as a request, and proves nothing.
            gates[endpoint]!.portal.postpone(until: now + settings.portalRetry)
        } else {
            gates[endpoint]!.portal.end(finding, now: now, settings.portalBackoff, using: &random)
        }
        if isGone { portalIsGone(endpoint, now: now) }
        for id in gate.lanes.sorted() { schedule(id, now: now) }
    }

    /// Lets the lanes of an endpoint send while its first probe runs, because an earlier probe of the same path, for
    /// another endpoint, has failed. Otherwise, while the probe's server is down, each new endpoint would wait for the
    /// probe's timeout. Directly after an outage of any endpoint, that failure proves nothing.
    mutating func presumeFailure(_ endpoint: Endpoint, _ probe: Int, now: Moment) {
        guard let gate = gates[endpoint], gate.portal.running == probe, now >= lastReconnectEnds else {
            return
        }
        gates[endpoint]!.portal.presumeFailure()
        for id in gate.lanes.sorted() { schedule(id, now: now) }
    }

    /// Resets the lanes of a host that a portal has affected: those that waited for a probe, and those over HTTPS that
    /// failed or do not trust the certificate, because it may have been the portal's. Others continue unchanged.
    ///
    /// The ports of a host count together, because HTTP and HTTPS have different ones. Ports with a portal are probed
    /// again immediately.
    ///
    /// - Parameter endpoint: The endpoint whose probe has found no portal any more.
    private mutating func portalIsGone(_ endpoint: Endpoint, now: Moment) {
        let ports = endpoints[endpoint.host, default: []]
        let captive = ports.filter { gates[$0]!.portal.portal != nil }
        let affected = ports.flatMap { gates[$0]!.lanes.sorted() }.filter { id in
            let lane = lanes[id]!
            if isChecked(lane.origin) { return lane.endpoint == endpoint || captive.contains(lane.endpoint) }
            return lane.isHalfOpen || lane.failuresEnd > now
        }
        // The failure of an earlier probe must not let their lanes send meanwhile.
        for port in captive { gates[port]!.portal.reset(isSuspected: true) }
        for id in affected {
            lanes[id]!.reset(releasing: [.trust], now: now)
            lanes[id]!.beginAfterOutage(now: now)
        }
        for origin in origins(of: affected) { slots.reconnected(origin, now: now) }
        for id in affected { schedule(id, now: now) }
    }

    /// Probes the paths to the host of a lane before the next request, because the last response may be a portal's: a
    /// login may have expired. Must be called before ``conclude(lane:epoch:effect:failures:course:now:)``.
    package mutating func suspectPortal(lane id: Int64, now: Moment) {
        guard let host = lanes[id]?.origin.host else { return }
        for endpoint in endpoints[host, default: []] where gates[endpoint]!.portal.permitsSending {
            gates[endpoint]!.portal.reset(isSuspected: true)
            for id in gates[endpoint]!.lanes.sorted() { schedule(id, now: now) }
        }
    }

    /// Keeps watching the path to an endpoint that has no lanes any more, if a probe has validated the path, or has
    /// failed. The next request is then sent without waiting for a probe. Watching ends for the endpoint that has been
    /// idle for longest, if there are too many.
    ///
    /// - Returns: The endpoint whose watch ends; `nil` if none does.
    mutating func idleEndpoint(_ origin: Origin) -> Endpoint? {
        let endpoint = origin.endpoint
        guard isChecked(origin), gates[endpoint]?.portal.permitsSending == true else { return endpoint }
        idleEndpoints.append(endpoint)
        yieldFirst(endpoint)
        return idleEndpoints.count > Self.maximumIdleEndpoints ? idleEndpoints.first : nil
    }
}
