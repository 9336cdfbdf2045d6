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
            let lasted = self.tally!.record(status.reachability, now: now)
            line.ends(tally.state, after: lasted ?? tally.age(now: now))
        } else {
            tally = HostTally(status.reachability, now: now)
        }
        newest = status
        return line
    }

    /// Whether a person would read the same: then only the path's generation rose, or a probe found what the
    /// one before had.
    func readsLike(_ status: ValidatedStatus) -> Bool {
        newest?.readsLike(status) ?? false
    }
}
