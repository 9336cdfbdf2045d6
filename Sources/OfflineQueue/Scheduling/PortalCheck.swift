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
