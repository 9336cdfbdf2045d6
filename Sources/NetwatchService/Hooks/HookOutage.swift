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
