// Lets lanes of plain HTTP wait until their path was probed for captive portals.

extension Scheduler {
    /// The number of hosts without lanes whose paths stay watched, so that a probe's result stays valid until the next
    /// request to the host.
    private static let maximumIdleHosts = 64

    /// Whether the lane's requests may be intercepted by a portal, and a probe is configured. Over HTTPS a portal
    /// cannot prove to be the server.
    func isChecked(_ origin: Origin) -> Bool { settings.checksPortals && origin.scheme == "http" }

    /// Returns whether no known portal, and no missing probe, prevents the lane from sending. Requests a probe if one
    /// is due.
    mutating func passesPortalCheck(_ lane: SchedulerLane, now: Moment) -> Bool {
        guard isChecked(lane.origin), let check = gates[lane.host]?.portal else { return true }
        if check.needsProbe(now: now) {
            lastProbe += 1
            gates[lane.host]!.portal.begin(lastProbe)
            wantedProbes.append(.probePortal(host: lane.host, probe: lastProbe))
        }
        return check.permitsSending
    }

    /// Returns whether a claimed request may be sent. Since the claim, the path may have changed without having been
    /// probed again, or a portal may have been found.
    package func mayStillSend(lane id: Int64, now: Moment) -> Bool {
        guard let lane = lanes[id], let gate = gates[lane.host] else { return true }
        guard constraints(of: lane, now: now).isMet else { return false }
        return !isChecked(lane.origin) || gate.portal.permitsSending
    }

    /// Returns the time at which a lane that waits because of a portal must be scheduled again; `nil` if the end of the
    /// running probe does that.
    func portalWake(_ lane: SchedulerLane) -> Moment? {
        guard let check = gates[lane.host]?.portal, check.running == nil else { return nil }
        return check.nextProbe
    }

    /// Returns the reason `captivePortal` if the lane waits because of a portal; `nil` if no portal is known.
    func portalReason(_ lane: SchedulerLane) -> QueuedReason? {
        guard isChecked(lane.origin), let page = gates[lane.host]?.portal.portal else { return nil }
        return .captivePortal(page: page)
    }

    /// Handles the result of a probe. When a portal is gone, the path is as good as new: the lanes that could not send
    /// through the portal are tried immediately, each with a canary.
    mutating func portalProbed(_ host: String, _ probe: Int, _ finding: PortalFinding, now: Moment) {
        guard let gate = gates[host], gate.portal.running == probe else { return }
        let isGone = gate.portal.portal != nil && finding == .clear
        if finding == .failed, now < gate.reconnectsUntil {
            // Directly after an outage a probe fails for the same reasons as a request, and proves nothing.
            gates[host]!.portal.postpone(until: now + settings.portalRetry)
        } else {
            gates[host]!.portal.end(finding, now: now, settings.portalBackoff, using: &random)
        }
        if isGone { portalIsGone(host, now: now) }
        for id in gate.lanes.sorted() { schedule(id, now: now) }
    }

    /// Lets the lanes of a host send while its first probe runs, because an earlier probe of the same path, for another
    /// host, has failed. Otherwise, while the probe's server is down, each new host would wait for the probe's timeout.
    /// Directly after an outage of any host, that failure proves nothing.
    mutating func presumeFailure(_ host: String, _ probe: Int, now: Moment) {
        guard let gate = gates[host], gate.portal.running == probe, now >= lastReconnectEnds else { return }
        gates[host]!.portal.presumeFailure()
        for id in gate.lanes.sorted() { schedule(id, now: now) }
    }

    /// Resets the lanes of a host that a portal has affected: those that waited for the probe, and those over HTTPS
    /// that failed or do not trust the certificate, because it may have been the portal's. Others continue unchanged.
    private mutating func portalIsGone(_ host: String, now: Moment) {
        let affected = gates[host]!.lanes.sorted().filter { id in
            isChecked(lanes[id]!.origin) || lanes[id]!.isHalfOpen || lanes[id]!.failuresEnd > now
        }
        for id in affected {
            lanes[id]!.reset(releasing: [.trust], now: now)
            lanes[id]!.awaitCanary()
        }
        for origin in origins(of: affected) { slots.reconnected(origin, now: now) }
    }

    /// Probes the path of a lane before its next request, because the last response may be a portal's: a login may have
    /// expired. Must be called before ``conclude(lane:epoch:effect:failures:course:now:)``.
    package mutating func suspectPortal(lane id: Int64, now: Moment) {
        guard let host = lanes[id]?.host, gates[host]?.portal.permitsSending == true else { return }
        gates[host]!.portal.reset(isSuspected: true)
        for id in gates[host]!.lanes.sorted() { schedule(id, now: now) }
    }

    /// Keeps watching the path of a host that has no lanes any more, if a probe has validated the path, or has failed.
    /// The next request is then sent without waiting for a probe. Watching ends for the host that has been idle for
    /// longest, if there are too many.
    ///
    /// - Returns: The host whose watch ends; `nil` if none does.
    mutating func idleHost(_ origin: Origin) -> String? {
        guard isChecked(origin), gates[origin.host]?.portal.permitsSending == true else { return origin.host }
        idleHosts.append(origin.host)
        return idleHosts.count > Self.maximumIdleHosts ? idleHosts.removeFirst() : nil
    }
}
