internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchService
internal import NetworkReachability

/// The state that `netwatch host` keeps for one host.
struct HostRecord {
    let target: PathTarget
    private(set) var newest: ValidatedStatus?
    private(set) var tally: HostTally?
    private var probes = ProbeTally()

    /// The name of the probe, if one is sent.
    private let probeName: String?

    init(_ target: PathTarget, probeName: String? = nil) {
        self.target = target
        self.probeName = probeName
    }

    /// Records a status and returns the line for it.
    mutating func take(_ status: ValidatedStatus, now: BootInstant, time: Date) -> HostLine {
        if let result = newResult(in: status) { probes.record(result) }
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

    /// Returns the result of a probe in a status; `nil` if the previous status had the same result. If only the status
    /// changes, but not the path, the validator reports the last result again.
    private func newResult(in status: ValidatedStatus) -> ProbeResult? {
        guard let newest, newest.probe != nil, newest.status != status.status else { return status.probe }
        let (old, new) = (newest.status, status.status)
        let isSamePath =
            old.pathGeneration == new.pathGeneration && old.path?.destination == new.path?.destination
        return isSamePath ? nil : status.probe
    }

    /// `up, 2 changes, up 98.2 % of 3 min 4 s; 21 probes, 19 ok, p50 12.6 ms, p95 14.8 ms`
    func summary(now: BootInstant) -> String? {
        let states = tally?.summary(now: now) {
            name(of: $0) == "notReachable" ? "not reachable" : name(of: $0)
        }
        return states.map { [$0, probes.summary].compactMap(\.self).joined(separator: "; ") }
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

/// The numbers of probes of a host, and the latencies of those that succeeded.
struct ProbeTally {
    private var count = 0
    private var successes = 0
    private var latencies = LatencyHistogram()

    mutating func record(_ result: ProbeResult) {
        count += 1
        guard result.validation == .valid else { return }
        successes += 1
        if let latency = result.latency { latencies.add(latency) }
    }

    /// `21 probes, 19 ok, p50 12.6 ms, p95 14.8 ms`; `nil` without a probe.
    var summary: String? {
        guard count > 0 else { return nil }
        let quantiles = [("p50", 0.5), ("p95", 0.95)].compactMap { name, part in
            latencies.quantile(part).map { "\(name) \(TextFormat.latency($0 / .milliseconds(1)))" }
        }
        return (["\(CountText.format(count, "probe")), \(successes) ok"] + quantiles).joined(separator: ", ")
    }
}
