internal import Dispatch
internal import Synchronization

/// What lies between the begin of listening and its end.
final class ListeningSession: Sendable {
    private struct State {
        var watch: PathWatch?
        var isEnded = false
    }

    private let queue: DispatchQueue
    private let call: NetworkReachabilityManager.Listener
    private let state = Mutex(State())
    private let statuses = DistinctStatuses()

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

    /// Passes a status on if it differs from the one passed on before.
    func take(_ path: PathStatus) {
        guard let status = statuses.next(path) else { return }
        queue.async { [self] in
            if !state.withLock({ $0.isEnded }) { call(status) }
        }
    }
}

/// The statuses of a manager among those of its path, which change more often: none is the same as the one
/// before.
final class DistinctStatuses: Sendable {
    private let latest = Mutex<NetworkReachabilityManager.NetworkReachabilityStatus?>(nil)

    func next(_ path: PathStatus) -> NetworkReachabilityManager.NetworkReachabilityStatus? {
        let status = NetworkReachabilityManager.NetworkReachabilityStatus(path)
        return latest.withLock { latest in
            if latest == status { return nil }
            latest = status
            return status
        }
    }
}
