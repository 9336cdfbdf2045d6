internal import NetwatchEventLoop

/// A watch of one target. It lasts until it is cancelled or released.
public final class PathWatch: Sendable {
    /// The state that the monitor's thread and the watch share. It retains neither the monitor nor the watch.
    final class Delivery: Sendable {
        private struct State {
            var latest: PathStatus?
            var isCancelled = false
        }

        private let state = Lock(State())
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

    /// The newest status. For a name other than `localhost` it is `unknown` until the first lookup has finished.
    ///
    /// Before the first delivery, the getter reads the status on the monitor's thread. The caller then waits briefly
    /// for this thread, which never blocks.
    public var status: PathStatus {
        delivery.latest ?? monitor.statusNow(of: key)
    }

    /// Ends the watch.
    ///
    /// If the monitor's thread is just delivering a status, the callback may still run after this method returns. After
    /// that it is not called again.
    public func cancel() {
        delivery.cancel()
        monitor.end(id, key)
    }
}
