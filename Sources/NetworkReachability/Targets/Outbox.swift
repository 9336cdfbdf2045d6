/// A FIFO queue of statuses that will be delivered to subscribers.
///
/// A class, because a subscriber that is called during ``deliver()`` may cause further statuses.
final class Outbox {
    private typealias Entry = (WatchedTarget.Subscriber, PathStatus)

    /// The maximum number of entries whose memory is kept for later deliveries: 64.
    private static let maximumKept = 64

    private var entries: [Entry] = []
    /// The entries that are being delivered. The two arrays change places, so that both keep their memory.
    private var current: [Entry] = []
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
            swap(&entries, &current)
            for (subscriber, status) in current { subscriber.deliver(status) }
            current.removeAll(keepingCapacity: current.count <= Self.maximumKept)
        }
        isDelivering = false
    }
}
