internal import Dispatch
internal import NetwatchEventLoop

/// Delivers statuses to one listener, from the start of listening to its end.
final class ListeningSession: Sendable {
    private struct State {
        var watch: PathWatch?
        var isEnded = false
        /// The statuses that the queue has not processed yet.
        var waiting: [NetworkReachabilityManager.NetworkReachabilityStatus] = []
        var latest: NetworkReachabilityManager.NetworkReachabilityStatus?
    }

    /// The maximum number of statuses that wait for the queue: 64. At the limit, a new status replaces the newest
    /// waiting one.
    ///
    /// The limit matters for a queue that never runs, such as the main queue of a program without a main run loop.
    private static let maxWaiting = 64

    private let queue: DispatchQueue
    private let listener: NetworkReachabilityManager.Listener
    private let state = Lock(State())

    init(queue: DispatchQueue, listener: @escaping NetworkReachabilityManager.Listener) {
        // A separate serial queue, so that calls of the listener do not overlap even if `queue` is concurrent.
        self.queue = DispatchQueue(label: "netwatch.reachability", target: queue)
        self.listener = listener
    }

    /// Retains the watch that calls ``take(_:)``. Cancels the watch if the session has already ended.
    func begin(_ watch: PathWatch) {
        let isEnded = state.withLock { state in
            if !state.isEnded { state.watch = watch }
            return state.isEnded
        }
        if isEnded { watch.cancel() }
    }

    /// Ends the watch and the calls of the listener. Statuses that wait for the queue are dropped.
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

    /// Calls the listener with the oldest waiting status, unless it equals the previous one.
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

/// The statuses of a ``NetworkReachabilityManager`` as a sequence, starting with the current one.
///
/// Each status differs from the previous one. A slow reader gets only the newest status.
public struct ReachabilityStatuses: AsyncSequence, Sendable {
    /// The sequence never fails.
    public typealias Failure = Never

    let paths: AsyncStream<PathStatus>

    /// The iterator over the statuses. It ends only if its task is cancelled.
    public struct AsyncIterator: AsyncIteratorProtocol {
        var paths: AsyncStream<PathStatus>.AsyncIterator
        private var latest: NetworkReachabilityManager.NetworkReachabilityStatus?

        init(_ paths: AsyncStream<PathStatus>) {
            self.paths = paths.makeAsyncIterator()
        }

        /// The element type of the sequence.
        public typealias Element = NetworkReachabilityManager.NetworkReachabilityStatus
        /// The iterator never fails.
        public typealias Failure = Never

        /// Returns the next status that differs from the previous one; `nil` if the task was cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async -> NetworkReachabilityManager.NetworkReachabilityStatus? {
            while let path = await paths.next(isolation: actor) {
                let status = NetworkReachabilityManager.NetworkReachabilityStatus(path)
                guard status != latest else { continue }
                latest = status
                return status
            }
            return nil
        }
    }

    /// Creates an iterator. A sequence supports only one iterator.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(paths)
    }
}
