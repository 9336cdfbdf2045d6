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
