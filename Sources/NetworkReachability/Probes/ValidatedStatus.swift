/// A status, and what a probe found out about its path.
public struct ValidatedStatus: Hashable, Sendable {
    /// What the kernel says, untouched by any probe.
    public let status: PathStatus
    /// The newest result over this very path; `nil` until there is one, and when there is no path.
    public let probe: ProbeResult?

    /// Makes a validated status.
    public init(status: PathStatus, probe: ProbeResult?) {
        self.status = status
        self.probe = probe
    }

    /// What the path carries: that of ``probe``, or `none` without one.
    public var validation: PathValidation {
        probe?.validation ?? .none
    }
}
