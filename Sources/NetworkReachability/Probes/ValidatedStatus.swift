/// A status together with the result of probing its path.
public struct ValidatedStatus: Hashable, Sendable {
    /// The status according to the kernel. Probes do not change it.
    public let status: PathStatus
    /// The newest result for the path of ``status``; `nil` before the first result and while there is no path.
    public let probe: ProbeResult?

    /// Creates a validated status.
    public init(status: PathStatus, probe: ProbeResult?) {
        self.status = status
        self.probe = probe
    }

    /// The validation in ``probe``, or ``PathValidation/none`` if there is no result.
    public var validation: PathValidation {
        probe?.validation ?? .none
    }
}
