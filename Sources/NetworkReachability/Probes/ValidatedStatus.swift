/// A status and the result of probing its path.
public struct ValidatedStatus: Hashable, Sendable {
    /// The kernel's status, which probes never change.
    public let status: PathStatus
    /// The newest result for this path; `nil` before the first result and while there is no path.
    public let probe: ProbeResult?

    /// Creates a validated status.
    public init(status: PathStatus, probe: ProbeResult?) {
        self.status = status
        self.probe = probe
    }

    /// The validation of ``probe``, or `none` without a result.
    public var validation: PathValidation {
        probe?.validation ?? .none
    }
}
