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
