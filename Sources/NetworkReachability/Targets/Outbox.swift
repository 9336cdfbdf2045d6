/// A queue of statuses to deliver to subscribers, in order.
///
/// A class, because delivering a status may add another one.
final class Outbox {
    private var entries: [(WatchedTarget.Subscriber, PathStatus)] = []
    private var isDelivering = false

    func put(_ status: PathStatus, for subscriber: WatchedTarget.Subscriber) {
        entries.append((subscriber, status))
    }

    /// Delivers all statuses, including those added in the meantime. A nested call does nothing, because the outer
    /// call continues.
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
