internal import Foundation
internal import NetworkReachability

/// What `netwatch host` remembers of one host.
struct HostRecord {
    let target: PathTarget
    private(set) var newest: PathStatus?
    private(set) var tally: HostTally?

    init(_ target: PathTarget) {
        self.target = target
    }

    /// Takes a status and returns the line about it.
    mutating func take(_ status: PathStatus, now: ContinuousClock.Instant, time: Date) -> HostLine {
        var line = HostLine(status, time: time)
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

    /// Whether a person would read the same: then only the path's generation rose.
    func readsLike(_ status: PathStatus) -> Bool {
        newest.map { $0.reachability == status.reachability && $0.words == status.words } ?? false
    }
}
