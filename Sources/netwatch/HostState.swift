internal import NetworkReachability

/// What a probe makes of a host that the kernel would send to.
enum HostState: String, Encodable {
    /// It answered.
    case up
    /// Something answered in its place: a captive portal.
    case degraded
    /// It did not answer.
    case down

    /// What a state amounts to for who wants to know whether the host answers.
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
    var state: HostState? { HostState(validation) }

    /// Whether the host can be reached: by the kernel's word, and where a probe was sent, by its answer too.
    var reachability: Reachability {
        switch state {
        case nil: status.reachability
        case .up: .reachable
        case .degraded, .down: .notReachable
        }
    }

    /// The answer in a word.
    var stateWords: String {
        state?.rawValue ?? status.reachability.words
    }

    /// How the host is reached, and what the probe found out; or why it is not reached.
    var words: String {
        guard let probe else { return status.words }
        switch probe.validation {
        case .none: return status.words
        case .valid: return status.words + (probe.latency.map { "  " + $0.milliseconds } ?? "")
        case .captive, .failed: return "\(status.words)  \(probe.validation)"
        }
    }

    /// Whether another reads the same to a person who does not care for milliseconds.
    func readsLike(_ other: ValidatedStatus) -> Bool {
        stateWords == other.stateWords && status.words == other.status.words
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
