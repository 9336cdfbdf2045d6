internal import NetwatchEventLoop
internal import NetworkReachability

/// The verdict of a path status, without the path or the reason.
enum Reachability: String, Encodable {
    case reachable, notReachable, unknown

    init(_ verdict: PathStatus.Verdict) {
        switch verdict {
        case .reachable: self = .reachable
        case .notReachable: self = .notReachable
        case .unknown: self = .unknown
        }
    }

    /// The verdict for people.
    var summary: String {
        self == .notReachable ? "not reachable" : rawValue
    }

    var exitStatus: ExitStatus {
        switch self {
        case .reachable: .yes
        case .notReachable: .no
        case .unknown: .unknown
        }
    }
}

extension PathStatus {
    var reachability: Reachability { Reachability(verdict) }

    /// The path to the target, or the reason why it is not reachable, for people.
    var summary: String {
        switch verdict {
        case .unknown(let reason), .notReachable(let reason): "\(reason)"
        case .reachable(let path): path.summary
        }
    }
}

extension NetworkPath {
    /// `eth0 192.0.2.7 via 192.0.2.1`, of which each part may be unknown.
    fileprivate var summary: String {
        if isLocal { return "this machine" }
        let interface = interfaceName.isEmpty ? nil : interfaceName
        let parts = [interface, source.map { "\($0)" }, gateway.map { "via \($0)" }]
        return parts.compactMap(\.self).joined(separator: " ")
    }
}

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

/// The state of an interface.
enum LinkState: String {
    case up, noCarrier, down

    init(_ interface: NetworkInterface) {
        self = interface.hasCarrier ? .up : interface.isUp ? .noCarrier : .down
    }

    var summary: String {
        self == .noCarrier ? "no carrier" : rawValue
    }
}

extension NetworkInterface {
    /// The addresses in a fixed order: IPv4 before IPv6, then by their bytes.
    var sortedAddresses: [AssignedAddress] {
        assignedAddresses.sorted { left, right in
            let (left, right) = (left.address.bytes, right.address.bytes)
            if left.count != right.count { return left.count < right.count }
            return left.lexicographicallyPrecedes(right)
        }
    }
}

extension NetworkInterface.AssignedAddress {
    /// The address without its zone, because the line already names the interface.
    var text: String {
        IPAddress(bytes: address.bytes)?.description ?? ""
    }
}

/// The names of a target for people. In JSON, the path to the public Internet is `general`.
extension PathTarget {
    /// The name in a column: the host or `Internet`.
    var title: String {
        self == .general ? "Internet" : description
    }

    /// The name in a sentence: the host in backticks or `the public Internet`.
    var subject: String {
        self == .general ? "the public Internet" : "`\(self)`"
    }
}
