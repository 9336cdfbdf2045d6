/// Statuses that are still to be told, each to one subscriber, in the order in which they were found out.
///
/// A class, since telling one may put in another.
final class Outbox {
    private var entries: [(WatchedTarget.Subscriber, PathStatus)] = []
    private var isDelivering = false

    func put(_ status: PathStatus, for subscriber: WatchedTarget.Subscriber) {
        entries.append((subscriber, status))
    }

    /// Tells everything, also what comes in meanwhile; when that is being done already, those who do it will.
    func deliver() {
        guard !isDelivering else { return }
        isDelivering = true
        while !entries.isEmpty {
            let entries = entries
            self.entries = []
            for (subscriber, status) in entries { subscriber.deliver(status) }
        }
        isDelivering = false
    }
}
