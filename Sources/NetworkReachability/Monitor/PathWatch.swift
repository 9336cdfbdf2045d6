internal import Synchronization

/// A watch of one target. It lasts until it is cancelled or released.
public final class PathWatch: Sendable {
    /// The state shared by the monitor's thread and the watch. It retains neither of them.
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

    /// The watched target.
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

    /// The newest status. Before the first delivery it is read from the monitor's thread, for which the caller waits
    /// as for a lock. For a name it is `unknown` until the first lookup finishes.
    public var status: PathStatus {
        delivery.latest ?? monitor.statusNow(of: key)
    }

    /// Ends the watch. The callback may still be running on the monitor's thread when this method returns, but is not
    /// called again.
    public func cancel() {
        delivery.cancel()
        monitor.end(id, key)
    }
}
