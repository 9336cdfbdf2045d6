internal import NetworkReachability

/// The state of a host according to a probe.
enum ProbedState: String, Encodable {
    /// The host responded.
    case up
    /// A captive portal responded instead of the host.
    case degraded
    /// The host did not respond.
    case down

    /// Converts the reachability of a probed host; `nil` for `unknown`.
    init?(_ reachability: Reachability) {
        switch reachability {
        case .unknown: return nil
        case .reachable: self = .up
        case .notReachable: self = .down
        }
    }

    init?(_ validation: PathValidation) {
        switch validation {
        case .none: return nil
        case .valid: self = .up
        case .captive: self = .degraded
        case .failed: self = .down
        }
    }
}

extension ValidatedStatus {
    var state: ProbedState? { ProbedState(validation) }

    /// Whether the host can be reached, according to the kernel's routes and to the probe if one was sent.
    var reachability: Reachability {
        switch state {
        case nil: status.reachability
        case .up: .reachable
        case .degraded, .down: .notReachable
        }
    }

    /// The state for people: the result of the probe, or else the reachability.
    var stateText: String {
        state?.rawValue ?? status.reachability.summary
    }

    /// The path to the host and the result of the probe, or the reason why the host is not reachable.
    ///
    /// - Parameter separator: The text between the two. Default: the gap between columns.
    func summary(separator: String = "  ") -> String {
        [status.summary, probeSummary].compactMap(\.self).joined(separator: separator)
    }

    /// The result of the probe: the latency after a success, or else the error.
    private var probeSummary: String? {
        guard let probe else { return nil }
        switch probe.validation {
        case .none: return nil
        case .valid: return probe.latency?.milliseconds
        case .captive, .failed: return "\(probe.validation)"
        }
    }

    /// Returns whether another status looks the same to a person. The latencies of their probes may differ.
    func displaysLike(_ other: ValidatedStatus) -> Bool {
        stateText == other.stateText && status.summary == other.status.summary
            && (validation == other.validation)
    }
}

extension Duration {
    /// `12.4 ms`
    fileprivate var milliseconds: String {
        let tenths = Int((self / .milliseconds(1) * 10).rounded())
        return "\(tenths / 10).\(tenths % 10) ms"
    }
}
