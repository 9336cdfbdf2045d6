internal import Dispatch
internal import Synchronization

/// One period of listening, from start to stop.
final class ListeningSession: Sendable {
    private struct State {
        var watch: PathWatch?
        var isEnded = false
        /// The statuses that the queue has not processed yet.
        var waiting: [NetworkReachabilityManager.NetworkReachabilityStatus] = []
        var latest: NetworkReachabilityManager.NetworkReachabilityStatus?
    }

    /// The maximum number of statuses waiting for a queue that does not run, such as a main queue without a run loop.
    /// At the limit, a new status replaces the last one waiting.
    private static let maxWaiting = 64

    private let queue: DispatchQueue
    private let listener: NetworkReachabilityManager.Listener
    private let state = Mutex(State())

    init(queue: DispatchQueue, listener: @escaping NetworkReachabilityManager.Listener) {
        // Serial, even if the listener's queue is concurrent.
        self.queue = DispatchQueue(label: "netwatch.reachability", target: queue)
        self.listener = listener
    }

    /// Stores the watch that feeds ``take(_:)``. Cancels it if the session has already ended.
    func begin(_ watch: PathWatch) {
        let isEnded = state.withLock { state in
            if !state.isEnded { state.watch = watch }
            return state.isEnded
        }
        if isEnded { watch.cancel() }
    }

    func end() {
        let watch = state.withLock { state in
            state.isEnded = true
            defer { state.watch = nil }
            return state.watch
        }
        watch?.cancel()
    }

    /// Enqueues a status for delivery on the queue.
    func take(_ path: PathStatus) {
        let hasGrown = state.withLock { state in
            let isFull = state.waiting.count == Self.maxWaiting
            if isFull { state.waiting.removeLast() }
            state.waiting.append(.init(path))
            return !isFull
        }
        if hasGrown { queue.async { self.deliverNext() } }
    }

    /// Delivers the oldest waiting status if it differs from the last delivered one.
    private func deliverNext() {
        let status = state.withLock { state -> NetworkReachabilityManager.NetworkReachabilityStatus? in
            guard !state.isEnded, !state.waiting.isEmpty else { return nil }
            let next = state.waiting.removeFirst()
            defer { state.latest = next }
            return next == state.latest ? nil : next
        }
        if let status { listener(status) }
    }
}
