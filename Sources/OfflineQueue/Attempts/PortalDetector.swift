/// The interface through which the queue learns whether a captive portal intercepts plain HTTP.
/// ``PathPortalDetector`` implements it with a captive portal probe.
package protocol PortalDetector: Sendable {
    /// Probes the current path to an endpoint once. Returns within seconds.
    func probe(pathTo endpoint: Endpoint) async -> PortalFinding

    /// Returns whether the last probe of the current path to an endpoint has failed. The path counts as the same for
    /// all endpoints to which packets take the same gateway.
    func hasFailed(pathTo endpoint: Endpoint) async -> Bool

    /// Discards what ``hasFailed(pathTo:)`` knows, because a path changed. The probes in progress do not count for it.
    func pathsChanged() async
}

/// The result of a captive portal probe.
package enum PortalFinding: Hashable, Sendable {
    /// There is no portal.
    case clear
    /// A portal intercepts plain HTTP. `page` is the URL at which a user can log in, if it is known.
    case captive(page: String?)
    /// The probe got no usable response, so a portal is neither proven nor ruled out.
    case failed
}
