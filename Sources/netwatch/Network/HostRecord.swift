internal import Foundation
internal import NetworkReachability

/// The state that `netwatch host` keeps for one host.
struct HostRecord {
    let target: PathTarget
    private(set) var newest: ValidatedStatus?
    private(set) var tally: HostTally?

    /// The name of the probe, if one is sent.
    private let probeName: String?

    init(_ target: PathTarget, probeName: String? = nil) {
        self.target = target
        self.probeName = probeName
    }

    /// Records a status and returns the line for it.
    mutating func take(_ status: ValidatedStatus, now: ContinuousClock.Instant, time: Date) -> HostLine {
        var line = HostLine(status, probe: probeName, time: time)
        if let tally {
            // A new reason or path alone does not start a new state.
            if let lasted = self.tally!.record(status.reachability, now: now) {
                line.ends(name(of: tally.state), after: lasted)
            }
        } else {
            tally = HostTally(status.reachability, now: now)
        }
        newest = status
        return line
    }

    /// Returns the name of a state as the line shows it: `up` or `down` for a probed host, otherwise its reachability.
    private func name(of state: Reachability) -> String {
        guard probeName != nil else { return state.rawValue }
        return ProbedState(state)?.rawValue ?? state.rawValue
    }

    /// `reachable, 2 changes, reachable 98.2 % of 3 min 4 s`
    func summary(now: ContinuousClock.Instant) -> String? {
        tally?.summary(now: now) { name(of: $0) == "notReachable" ? "not reachable" : name(of: $0) }
    }

    /// Returns whether a probe has the same result as the previous one over the same path.
    func isRepeated(by status: ValidatedStatus) -> Bool {
        probeName != nil && displaysLike(status)
            && newest?.status.pathGeneration == status.status.pathGeneration
    }

    /// Returns whether this status looks the same to a person as the previous one: only ``PathStatus/pathGeneration``
    /// changed, or a probe had the same result again.
    func displaysLike(_ status: ValidatedStatus) -> Bool {
        newest?.displaysLike(status) ?? false
    }
}
