internal import NetwatchEventLoop
internal import NetwatchService

/// How long a host was in each state, and how often its state changed.
struct HostTally {
    private var times: [Reachability: Duration] = [:]
    private var since: BootInstant
    private(set) var state: Reachability
    /// The number of state changes.
    private(set) var changes = 0

    /// Creates a tally whose first state starts now.
    init(_ state: Reachability, now: BootInstant) {
        self.state = state
        since = now
    }

    /// Records the state that was reported. Returns the duration of the previous state if the state changed.
    mutating func record(_ new: Reachability, now: BootInstant) -> Duration? {
        guard new != state else { return nil }
        let lasted = since.duration(to: now)
        times[state, default: .zero] += lasted
        (state, since) = (new, now)
        changes += 1
        return lasted
    }

    /// Returns the duration of the current state so far.
    func age(now: BootInstant) -> Duration {
        since.duration(to: now)
    }

    /// Returns the time spent in a state.
    func time(_ asked: Reachability, now: BootInstant) -> Duration {
        times[asked, default: .zero] + (asked == state ? age(now: now) : .zero)
    }

    /// Returns a summary such as `reachable, 2 changes, reachable 98.2 % of 3 min 4 s`. The percentage does not include
    /// time in which the state was unknown.
    ///
    /// - Parameter name: Returns the name of a state.
    func summary(now: BootInstant, name: (Reachability) -> String = \.summary) -> String {
        let reachable = time(.reachable, now: now)
        let known = reachable + time(.notReachable, now: now)
        let count = CountText.format(changes, "change")
        guard known > .zero else { return "\(name(state)), \(count), never known" }
        // In tenths of a percent.
        let share = Int((reachable / known * 1000).rounded())
        let percent = "\(share / 10).\(share % 10) %"
        return "\(name(state)), \(count), \(name(.reachable)) \(percent) of \(DurationText.format(known))"
    }
}
