/// An outage of a host, from the change to down until the next change to up.
///
/// The host may be down for several causes, one after the other, and its state may be unknown between them: when the
/// path comes back, for example, until a probe has succeeded. For hooks, this is one outage.
struct HookOutage: Hashable, Sendable {
    /// When the host was first down for each cause, in milliseconds since 1970.
    private var starts: [OutageCause: Int64]

    init(_ starts: [OutageCause: Int64] = [:]) {
        self.starts = starts
    }

    mutating func add(_ cause: OutageCause, since: Int64) {
        starts[cause] = starts[cause] ?? since
    }

    /// Returns the first of these causes and its start; `nil` if the host was down for none of them.
    func start(_ causes: Set<OutageCause>) -> HostTracker.Outage? {
        starts.filter { causes.contains($0.key) }.min { $0.value < $1.value }
            .map { HostTracker.Outage(cause: $0.key, since: $0.value) }
    }
}
