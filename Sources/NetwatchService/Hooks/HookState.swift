/// What one hook has reported, and the hosts that wait for its next message. A pure value.
///
/// A message reports the difference between the hosts as they are then and what the hook has reported before. So a host
/// that is up again, or down again, while it waits is not reported.
struct HookState: Sendable {
    /// A host as the service knows it.
    struct Host: Hashable, Sendable {
        enum Condition: Hashable, Sendable {
            case down(HookOutage)
            case up(since: HostTracker.Start)
        }

        /// What is checked, for people.
        let check: String
        var condition: Condition
    }

    let hook: Hook
    /// Identifies the hook in the history; see ``Hook/keys(of:)``.
    let key: String
    /// The outages that the hook has reported and whose ends it has not, by host.
    private(set) var reported: [String: HostTracker.Outage]
    /// The names of the hosts that wait, in the order of their first changes. Some may have nothing to report any more.
    private var waiting: [String] = []
    private var isWaiting: Set<String> = []

    /// Whether hosts wait.
    var hasWaiting: Bool { !waiting.isEmpty }

    init(_ hook: Hook, key: String, reported: [String: HostTracker.Outage] = [:]) {
        self.hook = hook
        self.key = key
        self.reported = reported
    }

    /// Creates the state of a hook that replaces a hook with the same key.
    init(_ hook: Hook, continuing old: HookState) {
        self.init(hook, key: old.key, reported: old.reported)
        (waiting, isWaiting) = (old.waiting, old.isWaiting)
    }

    /// Lets a host wait for the next message if there is something to report.
    mutating func add(_ name: String, _ host: Host?, now: HostTracker.Moment) {
        guard !isWaiting.contains(name), change(of: name, host, now: now) != nil else { return }
        isWaiting.insert(name)
        waiting.append(name)
    }

    /// Forgets the other hosts.
    mutating func keep(_ hosts: Set<String>) {
        reported = reported.filter { hosts.contains($0.key) }
        waiting.removeAll { !hosts.contains($0) }
        isWaiting.formIntersection(hosts)
    }

    /// Returns what the hook reports now of the hosts that wait, in their order, and records that it has reported it.
    mutating func take(_ hosts: [String: Host], now: HostTracker.Moment) -> [HostAlert] {
        let names = waiting
        (waiting, isWaiting) = ([], [])
        return names.compactMap { name in
            guard let host = hosts[name], let change = change(of: name, host, now: now) else { return nil }
            reported[name] = change.event == .down ? change.outage : nil
            return alert(change, of: name, host, now: now)
        }
    }

    // MARK: Changes

    private struct Change {
        let event: Hook.Event
        let outage: HostTracker.Outage
        let reason: String?
        let upSince: HostTracker.Start?
    }

    /// Returns what the hook has to report of a host; `nil` for nothing.
    private func change(of name: String, _ host: Host?, now: HostTracker.Moment) -> Change? {
        guard hook.concerns(name) else { return nil }
        switch (host?.condition, reported[name]) {
        case (.down(let outage)?, nil):
            return outage.start(hook.causes, now: now).map { start in
                Change(event: .down, outage: start, reason: outage.reason(start.cause), upSince: nil)
            }
        case (.up(let since)?, let outage?):
            return Change(event: .up, outage: outage, reason: nil, upSince: since)
        case (.down?, _?), (.up?, nil), (nil, _): return nil
        }
    }

    private func alert(
        _ change: Change,
        of name: String,
        _ host: Host,
        now: HostTracker.Moment
    ) -> HostAlert {
        let downSince = change.outage.since.wall(at: now)
        let upSince = change.upSince?.wall(at: now)
        return HostAlert(
            event: change.event,
            host: name,
            check: host.check,
            cause: change.outage.cause,
            reason: change.reason,
            outage: change.outage.since.id,
            downSince: min(downSince, upSince ?? downSince),
            upSince: upSince
        )
    }
}

/// An outage of a host, from the change to down until the next change to up.
///
/// The host may be down for several causes, one after the other, and its state may be unknown between them: when the
/// path comes back, for example, until a probe has succeeded. For hooks, this is one outage.
struct HookOutage: Hashable, Sendable {
    /// When the host was first down for each cause.
    private var starts: [OutageCause: HostTracker.Start]
    /// Why it was down then. The reasons of an earlier run of the service are not known.
    private var reasons: [OutageCause: String] = [:]

    init(_ starts: [OutageCause: HostTracker.Start] = [:]) {
        self.starts = starts
    }

    mutating func add(_ cause: OutageCause, since: HostTracker.Start, reason: String?) {
        guard starts[cause] == nil else { return }
        starts[cause] = since
        reasons[cause] = reason
    }

    func reason(_ cause: OutageCause) -> String? { reasons[cause] }

    /// Returns the first of these causes and its start; `nil` if the host was down for none of them.
    func start(_ causes: Set<OutageCause>, now: HostTracker.Moment) -> HostTracker.Outage? {
        starts.filter { causes.contains($0.key) }.min { $0.value.wall(at: now) < $1.value.wall(at: now) }
            .map { HostTracker.Outage(cause: $0.key, since: $0.value) }
    }
}
