/// The verdict on a target, combined from the verdicts on its addresses.
struct TargetVerdict: Hashable, Sendable {
    let verdict: PathStatus.Verdict
    var supportsIPv4 = false
    var supportsIPv6 = false

    init(_ verdict: PathStatus.Verdict) {
        self.verdict = verdict
        note(verdict)
    }

    /// Combines the verdicts on addresses; `nil` if there are none.
    ///
    /// The result is the first reachable verdict. If there is none, it is the first unknown one, and if all are not
    /// reachable, the first of all.
    ///
    /// - Parameter verdicts: In the order in which the resolver returned the addresses (RFC 6724).
    init?(_ verdicts: some Collection<PathStatus.Verdict>) {
        let decisive =
            verdicts.first(where: \.isReachable) ?? verdicts.first(where: \.isUnknown) ?? verdicts.first
        guard let decisive else { return nil }
        verdict = decisive
        for verdict in verdicts { note(verdict) }
    }

    private mutating func note(_ verdict: PathStatus.Verdict) {
        guard case .reachable(let path) = verdict else { return }
        switch path.destination.family {
        case .ipv4: supportsIPv4 = true
        case .ipv6: supportsIPv6 = true
        }
    }
}

extension PathStatus.Verdict {
    fileprivate var isUnknown: Bool {
        if case .unknown = self { true } else { false }
    }
}
