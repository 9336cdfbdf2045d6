/// A FIFO queue of statuses that will be delivered to subscribers.
///
/// A class, because a subscriber that is called during ``deliver()`` may cause further statuses.
final class Outbox {
    private var entries: [(WatchedTarget.Subscriber, PathStatus)] = []
    private var isDelivering = false

    func put(_ status: PathStatus, for subscriber: WatchedTarget.Subscriber) {
        entries.append((subscriber, status))
    }

    /// Delivers all statuses, including those that are added during the delivery.
    ///
    /// If a subscriber causes a nested call, that call has no effect. The outer call delivers the new statuses.
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
