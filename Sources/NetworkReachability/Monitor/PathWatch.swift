internal import Synchronization

/// One watch of one target. It lasts until it is cancelled or released.
public final class PathWatch: Sendable {
    /// What the monitor's thread and the watch share; it keeps neither of them alive.
    final class Delivery: Sendable {
        private struct State {
            var latest: PathStatus?
            var isCancelled = false
        }

        private let state = Mutex(State())
        private let onUpdate: @Sendable (PathStatus) -> Void

        init(onUpdate: @escaping @Sendable (PathStatus) -> Void) {
            self.onUpdate = onUpdate
        }

        var latest: PathStatus? {
            state.withLock { $0.latest }
        }

        func deliver(_ status: PathStatus) {
            let isWanted = state.withLock { state in
                state.latest = status
                return !state.isCancelled
            }
            if isWanted { onUpdate(status) }
        }

        func cancel() {
            state.withLock { $0.isCancelled = true }
        }
    }

    let delivery: Delivery
    private let monitor: PathMonitor
    private let id: UInt64

    private let key: WatchKey

    /// What is watched.
    public var target: PathTarget { key.target }

    init(
        monitor: PathMonitor,
        key: WatchKey,
        id: UInt64,
        onUpdate: @escaping @Sendable (PathStatus) -> Void
    ) {
        self.monitor = monitor
        self.key = key
        self.id = id
        delivery = Delivery(onUpdate: onUpdate)
    }

    deinit {
        cancel()
    }

    /// The newest status. Before the first one has been delivered it is read from the monitor's thread, for which
    /// the caller waits as it would for a lock; for a name whose first lookup is still running it is `unknown`.
    public var status: PathStatus {
        delivery.latest ?? monitor.statusNow(of: key)
    }

    /// Ends the watch. Its callback may be running on the monitor's thread while this returns, but is not
    /// called again.
    public func cancel() {
        delivery.cancel()
        monitor.end(id, key)
    }
}
