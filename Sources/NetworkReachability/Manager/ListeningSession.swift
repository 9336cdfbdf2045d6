internal import Dispatch
internal import Synchronization

/// What lies between the begin of listening and its end.
final class ListeningSession: Sendable {
    private struct State {
        var watch: PathWatch?
        var isEnded = false
        /// What the queue has not come to yet.
        var waiting: [NetworkReachabilityManager.NetworkReachabilityStatus] = []
        var latest: NetworkReachabilityManager.NetworkReachabilityStatus?
    }

    /// How many statuses wait for a queue that does not come to them, as a main queue that nobody runs; then the
    /// newest takes the place of the last.
    private static let longestLine = 64

    private let queue: DispatchQueue
    private let call: NetworkReachabilityManager.Listener
    private let state = Mutex(State())

    init(queue: DispatchQueue, call: @escaping NetworkReachabilityManager.Listener) {
        // Serial even where the listener's queue is concurrent.
        self.queue = DispatchQueue(label: "netwatch.reachability", target: queue)
        self.call = call
    }

    /// Keeps the watch whose statuses come to ``take(_:)``, unless the session ended meanwhile.
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

    /// Takes a status in, to be told on the queue.
    func take(_ path: PathStatus) {
        let isLonger = state.withLock { state in
            let isFull = state.waiting.count == Self.longestLine
            if isFull { state.waiting.removeLast() }
            state.waiting.append(.init(path))
            return !isFull
        }
        if isLonger { queue.async { self.tellNext() } }
    }

    /// Tells what has waited longest, if it differs from what was told before.
    private func tellNext() {
        let status = state.withLock { state -> NetworkReachabilityManager.NetworkReachabilityStatus? in
            guard !state.isEnded, !state.waiting.isEmpty else { return nil }
            let next = state.waiting.removeFirst()
            defer { state.latest = next }
            return next == state.latest ? nil : next
        }
        if let status { call(status) }
    }
}
