internal import Foundation
internal import NetworkReachability

/// What `netwatch host` remembers of one host.
struct HostRecord {
    let target: PathTarget
    private(set) var newest: ValidatedStatus?
    private(set) var tally: HostTally?

    /// What the probe is called, if one is sent.
    private let probeName: String?

    init(_ target: PathTarget, probeName: String? = nil) {
        self.target = target
        self.probeName = probeName
    }

    /// Takes a status and returns the line about it.
    mutating func take(_ status: ValidatedStatus, now: ContinuousClock.Instant, time: Date) -> HostLine {
        var line = HostLine(status, probe: probeName, time: time)
        if let tally {
            // A change of reason or path does not begin a new state.
            if let lasted = self.tally!.record(status.reachability, now: now) {
                line.ends(words(tally.state), after: lasted)
            }
        } else {
            tally = HostTally(status.reachability, now: now)
        }
        newest = status
        return line
    }

    /// A state in the words of the line: of what answers, or of what can be reached.
    private func words(_ state: Reachability) -> String {
        guard probeName != nil else { return state.rawValue }
        return HostState(state)?.rawValue ?? state.rawValue
    }

    /// `reachable, 2 changes, reachable 98.2 % of 3 min 4 s`
    func summary(now: ContinuousClock.Instant) -> String? {
        tally?.words(now: now) { words($0) == "notReachable" ? "not reachable" : words($0) }
    }

    /// Whether a probe found just what the one before did, over the same path.
    func isRepeated(by status: ValidatedStatus) -> Bool {
        probeName != nil && readsLike(status) && newest?.status.pathGeneration == status.status.pathGeneration
    }

    /// Whether a person would read the same: then only the path's generation rose, or a probe found what the
    /// one before had.
    func readsLike(_ status: ValidatedStatus) -> Bool {
        newest?.readsLike(status) ?? false
    }
}
