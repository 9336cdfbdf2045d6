/// Publishes the snapshots of a monitor to their subscribers. Confined to the monitor's thread.
///
/// A class, because a subscriber may add or remove subscribers while it receives a snapshot.
final class SnapshotPublisher {
    typealias Subscriber = @Sendable (NetworkSnapshot) -> Void

    private(set) var current: NetworkSnapshot
    private var isStale = true
    private var subscribers: [UInt64: Subscriber] = [:]

    init(general: PathStatus) {
        current = NetworkSnapshot(generation: 0, interfaces: [], general: general)
    }

    func subscribe(_ id: UInt64, _ deliver: @escaping Subscriber) {
        subscribers[id] = deliver
        deliver(current)
    }

    func unsubscribe(_ id: UInt64) {
        subscribers[id] = nil
    }

    /// Makes the next call of ``publishIfStale(_:)`` create a snapshot and compare it with the current one.
    func markStale() {
        isStale = true
    }

    /// Delivers a new snapshot to all subscribers if the snapshot is stale and anything has changed.
    ///
    /// - Parameter state: Returns the current interfaces and the status of the general target. Called only if the
    ///   snapshot is stale.
    func publishIfStale(_ state: () -> (interfaces: [NetworkInterface], general: PathStatus)) {
        guard isStale else { return }
        isStale = false
        let (interfaces, general) = state()
        let next = NetworkSnapshot(
            generation: current.generation + 1,
            interfaces: interfaces,
            general: general
        )
        guard !next.isSame(as: current) else { return }
        current = next
        for deliver in subscribers.values.map(\.self) { deliver(next) }
    }
}
