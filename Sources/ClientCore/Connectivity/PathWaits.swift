internal import NetwatchEventLoop
internal import NetworkReachability

/// Requests that wait for a path to their host. All waiters for the same host share one watch, which is cancelled when
/// the last of them stops waiting.
final class PathWaits: Sendable {
    /// The result of a wait.
    enum Outcome: Hashable, Sendable {
        /// The path was already reachable at the first status after the failure. The failure therefore had another
        /// cause, and the retry needs a backoff.
        case alreadyReachable
        /// The path was missing and has come back. The delay spreads the retries of all waiters over time.
        case reachable(after: Duration)
        /// The wait timed out or was cancelled.
        case ended
    }

    /// The destination that requests wait for.
    struct Key: Hashable {
        let host: NetworkHost
        /// The port of the connection, by which policy rules may route; `nil` if it is not known.
        let port: UInt16?
        /// The path monitor. It is part of the key because a retrier may serve sessions with different monitors.
        let monitor: ObjectIdentifier
    }

    fileprivate struct Waiter {
        let id: UInt64
        let continuation: CheckedContinuation<Outcome, Never>
        var timeout: Task<Void, any Error>?
    }

    /// The waiters for one key, in the order in which their requests failed.
    fileprivate struct Queue {
        let id: UInt64
        var waiters: [Waiter] = []
        var watch: PathWatch?
        /// Whether a status without a usable path has been received.
        var wasMissing = false
    }

    fileprivate struct State {
        var queues: [Key: Queue] = [:]
        /// The ids of waits that were cancelled before they joined a queue.
        var cancelled: Set<UInt64> = []
        var lastID: UInt64 = 0
    }

    /// The maximum duration of a timer: 68 years. Adding much more to the current time would overflow.
    private static let longestSleep: Duration = .seconds(Int32.max)

    /// A function that calls a closure after a delay, unless the returned task is cancelled before.
    typealias Timer = @Sendable (Duration, _ body: @escaping @Sendable () -> Void) -> Task<Void, any Error>

    private let pacing: RetryPacing
    private let timer: Timer
    private let endsWait: @Sendable (PathStatus) -> Bool
    private let state = Lock(State())

    /// - Parameters:
    ///   - pacing: Spreads the retries of requests that have waited for the same host over time.
    ///   - timer: Starts the timeouts of waits. Tests replace it.
    ///   - endsWait: Returns whether a status ends a wait. Called on the monitor's thread.
    init(
        _ pacing: RetryPacing,
        timer: @escaping Timer = { time, body in
            Task {
                try await Task.sleep(for: time)
                body()
            }
        },
        endsWait: @escaping @Sendable (PathStatus) -> Bool
    ) {
        self.pacing = pacing
        self.timer = timer
        self.endsWait = endsWait
    }

    /// The number of waiters, and the number of hosts that were reported as unreachable while requests waited for them.
    /// For tests.
    var count: (waiters: Int, unreachable: Int) {
        state.withLock { state in
            let waiters = state.queues.values.map(\.waiters.count)
            return (waiters.reduce(0, +), state.queues.values.count(where: \.wasMissing))
        }
    }

    /// Notified after each change of ``count``. The tests wait for it before they change a path or cancel a request.
    let changes = ChangeWaiters()

    /// Waits for a path to a host.
    ///
    /// - Parameters:
    ///   - host: The host.
    ///   - port: The port of the connection. Default: `nil`, unknown.
    ///   - monitor: The monitor that watches the path.
    ///   - maximum: The maximum time to wait; `nil` for no limit.
    /// - Returns: The result. If the task is cancelled, the function returns ``Outcome/ended`` immediately.
    func wait(
        for host: NetworkHost,
        port: UInt16? = nil,
        _ monitor: PathMonitor,
        atMost maximum: Duration?
    ) async -> Outcome {
        let key = Key(host: host, port: port, monitor: ObjectIdentifier(monitor))
        let id = newID()
        defer { state.withLock { _ = $0.cancelled.remove(id) } }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                join(key, Waiter(id: id, continuation: continuation), monitor, maximum)
            }
        } onCancel: {
            cancel(id, at: key)
        }
    }

    private func newID() -> UInt64 {
        state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
    }

    // MARK: Waiters

    private func join(_ key: Key, _ waiter: Waiter, _ monitor: PathMonitor, _ maximum: Duration?) {
        let entry = state.withLock { $0.join(key, waiter) }
        changes.changed()
        switch entry {
        case .joined: break
        case .cancelled: return waiter.end(.ended)
        case .opened(let queue): watch(key, queue, monitor)
        }
        // The timeout starts only after the waiter has joined, so that an immediate timeout finds the waiter.
        if let maximum { limit(waiter.id, key, to: maximum) }
    }

    private func limit(_ id: UInt64, _ key: Key, to maximum: Duration) {
        let timeout = timer(min(maximum, Self.longestSleep)) { [weak self] in self?.leave(id, key) }
        let isWaiting = state.withLock { $0.setTimeout(timeout, of: id, key) }
        if !isWaiting { timeout.cancel() }
    }

    private func watch(_ key: Key, _ queue: UInt64, _ monitor: PathMonitor) {
        var options = PathOptions()
        options.port = key.port
        let watch = monitor.watch(.host(key.host), options: options) { [weak self] status in
            self?.update(key, queue, status)
        }
        let isCurrent = state.withLock { state in
            guard state.queues[key]?.id == queue else { return false }
            state.queues[key]?.watch = watch
            return true
        }
        if !isCurrent { watch.cancel() }
    }

    private func cancel(_ id: UInt64, at key: Key) {
        let isWaiting = state.withLock { state in
            let isWaiting = state.queues[key]?.waiters.contains { $0.id == id } ?? false
            if !isWaiting { state.cancelled.insert(id) }
            return isWaiting
        }
        if isWaiting { leave(id, key) }
    }

    private func leave(_ id: UInt64, _ key: Key) {
        let (waiter, watch) = state.withLock { $0.leave(id, key) }
        changes.changed()
        watch?.cancel()
        waiter?.end(.ended)
    }

    // MARK: Path changes

    private func update(_ key: Key, _ id: UInt64, _ status: PathStatus) {
        let endsWait = endsWait(status)
        if endsWait, RequestFault.dropsWakeUp.hasOccurred { return }
        let queue = state.withLock { state -> Queue? in
            guard state.queues[key]?.id == id else { return nil }
            if endsWait { return state.queues.removeValue(forKey: key) }
            state.queues[key]?.wasMissing = true
            return nil
        }
        changes.changed()
        if let queue { resume(queue) }
    }

    private func resume(_ queue: Queue) {
        queue.watch?.cancel()
        guard queue.wasMissing else { return queue.waiters.forEach { $0.end(.alreadyReachable) } }
        let offsets = pacing.offsets(of: queue.waiters.count)
        for (waiter, offset) in zip(queue.waiters, offsets) { waiter.end(.reachable(after: offset)) }
    }
}

extension PathWaits.Waiter {
    fileprivate func end(_ outcome: PathWaits.Outcome) {
        timeout?.cancel()
        continuation.resume(returning: outcome)
    }
}

extension PathWaits.State {
    fileprivate enum Entry {
        case joined
        /// The waiter is the first of a new queue. The value is the queue's id.
        case opened(UInt64)
        case cancelled
    }

    fileprivate mutating func join(_ key: PathWaits.Key, _ waiter: PathWaits.Waiter) -> Entry {
        if cancelled.contains(waiter.id) { return .cancelled }
        if queues[key] != nil {
            queues[key]?.waiters.append(waiter)
            return .joined
        }
        queues[key] = .init(id: waiter.id, waiters: [waiter])
        return .opened(waiter.id)
    }

    /// Stores the timeout of a waiter. Returns whether the waiter is still waiting.
    fileprivate mutating func setTimeout(
        _ timeout: Task<Void, any Error>,
        of id: UInt64,
        _ key: PathWaits.Key
    ) -> Bool {
        guard let index = queues[key]?.waiters.lastIndex(where: { $0.id == id }) else { return false }
        queues[key]?.waiters[index].timeout = timeout
        return true
    }

    fileprivate mutating func leave(
        _ id: UInt64,
        _ key: PathWaits.Key
    ) -> (waiter: PathWaits.Waiter?, watch: PathWatch?) {
        guard let index = queues[key]?.waiters.firstIndex(where: { $0.id == id }) else { return (nil, nil) }
        let waiter = queues[key]?.waiters.remove(at: index)
        guard queues[key]?.waiters.isEmpty == true else { return (waiter, nil) }
        return (waiter, queues.removeValue(forKey: key)?.watch)
    }
}
