// Snapshots of the whole network.
extension MonitorCore {
    typealias SnapshotReceiver = @Sendable (NetworkSnapshot) -> Void

    func subscribeToSnapshots(_ id: UInt64, _ deliver: @escaping SnapshotReceiver) {
        snapshotReceivers[id] = deliver
        deliver(snapshot)
    }

    func unsubscribeFromSnapshots(_ id: UInt64) {
        snapshotReceivers[id] = nil
    }

    /// Delivers a new snapshot to all receivers if anything changed.
    func publishSnapshot() {
        snapshotIsStale = false
        let next = currentSnapshot(generation: snapshot.generation + 1)
        guard !next.isSame(as: snapshot) else { return }
        snapshot = next
        for deliver in snapshotReceivers.values.map(\.self) { deliver(next) }
    }

    private func currentSnapshot(generation: UInt64) -> NetworkSnapshot {
        let descriptions = connection?.reader.interfaces.descriptions ?? [:]
        return NetworkSnapshot(
            generation: generation,
            interfaces: descriptions.values.sorted { $0.index < $1.index },
            general: status(of: general.key)
        )
    }
}
