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

/// What is known about captive portals on the path to an endpoint.
struct PortalCheck: Hashable, Sendable {
    /// The last finding; `nil` if the path was not probed since its last change.
    private(set) var finding: PortalFinding?
    /// The time from which the path may be probed again.
    private(set) var nextProbe: Moment = .zero
    /// The number of the running probe; `nil` if none runs.
    private(set) var running: Int?
    /// Whether a response since the last finding may have come from a portal.
    private var isSuspected = false
    /// The number of probes since the path was last known to be free of portals.
    private var probes = 0

    /// Whether requests may be sent over plain HTTP. After a failed probe they may: if the server of the probe is down,
    /// the queue must not stop.
    var permitsSending: Bool {
        switch finding {
        case .clear, .failed: true
        case .captive, nil: false
        }
    }

    /// The portal's page; `nil` if no portal is known. The inner value is `nil` if the page is not known.
    var portal: String?? {
        if case .captive(let page) = finding { .some(page) } else { nil }
    }

    /// Whether a request to send is a reason to probe the path now.
    func needsProbe(now: Moment) -> Bool { running == nil && finding != .clear && nextProbe <= now }

    mutating func begin(_ number: Int) { running = number }

    /// Records the result of the running probe.
    ///
    /// - Parameter backoff: The delay before the next probe, unless there is no portal.
    mutating func end(
        _ finding: PortalFinding,
        now: Moment,
        _ backoff: Backoff,
        using random: inout SplitMix64
    ) {
        running = nil
        isSuspected = false
        self.finding = finding
        probes = finding == .clear ? 0 : probes + 1
        nextProbe = now + backoff.delay(after: probes, using: &random)
    }

    /// Records that an earlier probe of the path has failed, until the running one ends. Has no effect if a response is
    /// suspected to be a portal's, because that is newer evidence.
    mutating func presumeFailure() { if finding == nil, !isSuspected { finding = .failed } }

    /// Ends the running probe without a finding. The path is probed again later.
    mutating func postpone(until moment: Moment) {
        running = nil
        nextProbe = moment
    }

    /// Forgets everything, because the path may be a different path. The result of a running probe is then ignored.
    ///
    /// - Parameter isSuspected: Whether a response may have come from a portal. Default `false`.
    mutating func reset(isSuspected: Bool = false) {
        self = PortalCheck()
        self.isSuspected = isSuspected
    }
}
