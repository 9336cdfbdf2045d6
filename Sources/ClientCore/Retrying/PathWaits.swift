internal import NetworkReachability
internal import Synchronization

/// Requests that wait for the paths to their hosts: one watch for each host, whoever waits for it, and none when
/// nobody does.
final class PathWaits: Sendable {
    /// What a wait came to.
    enum Outcome: Hashable, Sendable {
        /// There was a path all the time.
        case wasThere
        /// The path came back; the request goes after so long.
        case came(after: Duration)
        /// Too long, or cancelled.
        case ended
    }

    /// What is waited for.
    struct Place: Hashable {
        let host: NetworkHost
        /// A retrier may serve sessions of several monitors.
        let monitor: ObjectIdentifier
    }

    fileprivate struct Waiter {
        let id: UInt64
        let continuation: CheckedContinuation<Outcome, Never>
        var timeout: Task<Void, any Error>?
    }

    /// Those who wait for one place, in the order in which they failed.
    fileprivate struct Line {
        let id: UInt64
        var waiters: [Waiter] = []
        var watch: PathWatch?
        /// Whether the path was seen missing.
        var wasMissing = false
    }

    fileprivate struct State {
        var lines: [Place: Line] = [:]
        /// Waits that were cancelled before they began.
        var cancelled: Set<UInt64> = []
        var lastID: UInt64 = 0
    }

    /// 68 years; adding much more to the present would overflow.
    private static let longestSleep: Duration = .seconds(Int32.max)

    /// Calls a closure after a time, unless the task that it returns was cancelled by then.
    typealias Timer = @Sendable (Duration, _ body: @escaping @Sendable () -> Void) -> Task<Void, any Error>

    private let pacing: RetryPacing
    private let timer: Timer
    private let isEnough: @Sendable (PathStatus) -> Bool
    private let state = Mutex(State())

    /// - Parameters:
    ///   - timer: For tests.
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

    /// How many wait, and for how many places that were seen to be out of reach.
    var count: (waiters: Int, places: Int) {
        state.withLock { state in
            let waiters = state.lines.values.map(\.waiters.count)
            return (waiters.reduce(0, +), state.lines.values.count(where: \.wasMissing))
        }
    }

    /// Waits for a path to a host.
    ///
    /// - Parameters:
    ///   - longest: How long at most; `nil` for ever.
    /// - Returns: At once when the task is cancelled.
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

    // MARK: Coming and going

    private func join(_ place: Place, _ waiter: Waiter, _ monitor: PathMonitor, _ longest: Duration?) {
        switch state.withLock({ $0.join(place, waiter) }) {
        case .joined: break
        case .cancelled: return waiter.end(.ended)
        case .opened(let line): watch(place, line, monitor)
        }
        // Not before it has joined: a time that is over at once would find nobody to end.
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

    // MARK: The path

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
        /// The first of a new line, which has that number.
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

    /// Returns whether it still waits.
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
