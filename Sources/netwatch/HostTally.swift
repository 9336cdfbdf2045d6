/// For how long a host was in which state, and how often that changed.
struct HostTally {
    private var times: [Reachability: Duration] = [:]
    private var since: ContinuousClock.Instant
    private(set) var state: Reachability
    /// How often the state became another one.
    private(set) var changes = 0

    /// Begins with the first state that was reported.
    init(_ state: Reachability, now: ContinuousClock.Instant) {
        self.state = state
        since = now
    }

    /// Takes a report. Returns how long the state before had lasted, if this is another one.
    mutating func record(_ new: Reachability, now: ContinuousClock.Instant) -> Duration? {
        guard new != state else { return nil }
        let lasted = since.duration(to: now)
        times[state, default: .zero] += lasted
        (state, since) = (new, now)
        changes += 1
        return lasted
    }

    /// How long the present state has lasted.
    func age(now: ContinuousClock.Instant) -> Duration {
        since.duration(to: now)
    }

    /// The time spent in a state.
    func time(_ asked: Reachability, now: ContinuousClock.Instant) -> Duration {
        times[asked, default: .zero] + (asked == state ? age(now: now) : .zero)
    }

    /// `reachable, 2 changes, reachable 98.2 % of 3 min 4 s`: the share of the time in which it was known.
    ///
    /// - Parameter name: What a state is called.
    func words(now: ContinuousClock.Instant, name: (Reachability) -> String = \.words) -> String {
        let reachable = time(.reachable, now: now)
        let known = reachable + time(.notReachable, now: now)
        let count = "\(changes) \(changes == 1 ? "change" : "changes")"
        guard known > .zero else { return "\(name(state)), \(count), never known" }
        // In tenths of a percent.
        let share = Int((reachable / known * 1000).rounded())
        let percent = "\(share / 10).\(share % 10) %"
        return "\(name(state)), \(count), \(name(.reachable)) \(percent) of \(DurationText.words(known))"
    }
}
