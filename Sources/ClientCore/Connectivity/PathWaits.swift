internal import NetworkReachability
internal import Synchronization

/// Requests that wait for a path to their host. All waiters for one host share one watch, which ends with the
/// last of them.
final class PathWaits: Sendable {
    /// The result of a wait.
    enum Outcome: Hashable, Sendable {
        /// The path was never missing.
        case wasThere
        /// The path came back. The request is retried after the delay.
        case came(after: Duration)
        /// The wait timed out or was cancelled.
        case ended
    }

    /// The destination that requests wait for.
    struct Place: Hashable {
        let host: NetworkHost
        /// Part of the key because a retrier may serve sessions with different monitors.
        let monitor: ObjectIdentifier
    }

    fileprivate struct Waiter {
        let id: UInt64
        let continuation: CheckedContinuation<Outcome, Never>
        var timeout: Task<Void, any Error>?
    }

    /// The waiters for one place, in the order in which their requests failed.
    fileprivate struct Line {
        let id: UInt64
        var waiters: [Waiter] = []
        var watch: PathWatch?
        /// Whether the path has been seen missing.
        var wasMissing = false
    }

    fileprivate struct State {
        var lines: [Place: Line] = [:]
        /// The waits that were cancelled before they began.
        var cancelled: Set<UInt64> = []
        var lastID: UInt64 = 0
    }

    /// 68 years. Adding much more to the current time would overflow.
    private static let longestSleep: Duration = .seconds(Int32.max)

    /// Calls a closure after a delay, unless the returned task has been cancelled by then.
    typealias Timer = @Sendable (Duration, _ body: @escaping @Sendable () -> Void) -> Task<Void, any Error>

    private let pacing: RetryPacing
    private let timer: Timer
    private let isEnough: @Sendable (PathStatus) -> Bool
    private let state = Mutex(State())

    /// - Parameters:
    ///   - timer: Replaceable for tests.
    ///   - isEnough: Whether a status ends a wait. Called on the monitor's thread.
    init(
        _ pacing: RetryPacing,
        timer: @escaping Timer = { time, body in
            Task {
                try await Task.sleep(for: time)
                body()
            }
        },
        isEnough: @escaping @Sendable (PathStatus) -> Bool
    ) {
        self.pacing = pacing
        self.timer = timer
        self.isEnough = isEnough
    }

    /// The number of waiters, and of places seen to be unreachable.
    var count: (waiters: Int, places: Int) {
        state.withLock { state in
            let waiters = state.lines.values.map(\.waiters.count)
            return (waiters.reduce(0, +), state.lines.values.count(where: \.wasMissing))
        }
    }

    /// Waits for a path to a host.
    ///
    /// - Parameters:
    ///   - longest: The maximum time to wait; `nil` for no limit.
    /// - Returns: The result; ``Outcome/ended`` immediately if the task is cancelled.
    func wait(for host: NetworkHost, _ monitor: PathMonitor, atMost longest: Duration?) async -> Outcome {
        let place = Place(host: host, monitor: ObjectIdentifier(monitor))
        let id = newID()
        defer { state.withLock { _ = $0.cancelled.remove(id) } }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                join(place, Waiter(id: id, continuation: continuation), monitor, longest)
            }
        } onCancel: {
            cancel(id, at: place)
        }
    }

    private func newID() -> UInt64 {
        state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
    }

    // MARK: Waiters

    private func join(_ place: Place, _ waiter: Waiter, _ monitor: PathMonitor, _ longest: Duration?) {
        switch state.withLock({ $0.join(place, waiter) }) {
        case .joined: break
        case .cancelled: return waiter.end(.ended)
        case .opened(let line): watch(place, line, monitor)
        }
        // Only after the waiter has joined: an immediate timeout would not find it otherwise.
        if let longest { limit(waiter.id, place, to: longest) }
    }

    private func limit(_ id: UInt64, _ place: Place, to longest: Duration) {
        let timeout = timer(min(longest, Self.longestSleep)) { [weak self] in self?.leave(id, place) }
        let isWaiting = state.withLock { $0.note(timeout, of: id, place) }
        if !isWaiting { timeout.cancel() }
    }

    private func watch(_ place: Place, _ line: UInt64, _ monitor: PathMonitor) {
        let watch = monitor.watch(.host(place.host)) { [weak self] status in
            self?.update(place, line, status)
        }
        let isWanted = state.withLock { state in
            guard state.lines[place]?.id == line else { return false }
            state.lines[place]?.watch = watch
            return true
        }
        if !isWanted { watch.cancel() }
    }

    private func cancel(_ id: UInt64, at place: Place) {
        let isWaiting = state.withLock { state in
            let isWaiting = state.lines[place]?.waiters.contains { $0.id == id } ?? false
            if !isWaiting { state.cancelled.insert(id) }
            return isWaiting
        }
        if isWaiting { leave(id, place) }
    }

    private func leave(_ id: UInt64, _ place: Place) {
        let (waiter, watch) = state.withLock { $0.leave(id, place) }
        watch?.cancel()
        waiter?.end(.ended)
    }

    // MARK: Path changes

    private func update(_ place: Place, _ id: UInt64, _ status: PathStatus) {
        let isEnough = isEnough(status)
        if isEnough, RequestFault.dropsWakeUp.strikesFromNow { return }
        let line = state.withLock { state -> Line? in
            guard state.lines[place]?.id == id else { return nil }
            if isEnough { return state.lines.removeValue(forKey: place) }
            state.lines[place]?.wasMissing = true
            return nil
        }
        if let line { letGo(line) }
    }

    private func letGo(_ line: Line) {
        line.watch?.cancel()
        guard line.wasMissing else { return line.waiters.forEach { $0.end(.wasThere) } }
        var generator = SystemRandomNumberGenerator()
        let offsets = pacing.offsets(of: line.waiters.count, using: &generator)
        for (waiter, offset) in zip(line.waiters, offsets) { waiter.end(.came(after: offset)) }
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
        /// The first waiter of a new line, with the line's id.
        case opened(UInt64)
        case cancelled
    }

    fileprivate mutating func join(_ place: PathWaits.Place, _ waiter: PathWaits.Waiter) -> Entry {
        if cancelled.contains(waiter.id) { return .cancelled }
        if lines[place] != nil {
            lines[place]?.waiters.append(waiter)
            return .joined
        }
        lines[place] = .init(id: waiter.id, waiters: [waiter])
        return .opened(waiter.id)
    }

    /// Stores the timeout of a waiter. Returns whether it is still waiting.
    fileprivate mutating func note(
        _ timeout: Task<Void, any Error>,
        of id: UInt64,
        _ place: PathWaits.Place
    ) -> Bool {
        guard let index = lines[place]?.waiters.lastIndex(where: { $0.id == id }) else { return false }
        lines[place]?.waiters[index].timeout = timeout
        return true
    }

    fileprivate mutating func leave(
        _ id: UInt64,
        _ place: PathWaits.Place
    ) -> (waiter: PathWaits.Waiter?, watch: PathWatch?) {
        guard let index = lines[place]?.waiters.firstIndex(where: { $0.id == id }) else { return (nil, nil) }
        let waiter = lines[place]?.waiters.remove(at: index)
        guard lines[place]?.waiters.isEmpty == true else { return (waiter, nil) }
        return (waiter, lines.removeValue(forKey: place)?.watch)
    }
}
