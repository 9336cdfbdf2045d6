internal import NetwatchEventLoop
internal import NetwatchService
internal import NetworkReachability

/// The run of a command that receives values from other threads until it decides to end.
protocol WatchSession {
    associatedtype Value: Sendable
    associatedtype Outcome

    /// The buffer of the values.
    var inbox: Inbox<Value> { get }

    /// Takes the newest value of a source. Returns the outcome to end the run before it takes other values.
    mutating func take(_ value: Value, from source: Int, now: BootInstant) throws(CommandError) -> Outcome?

    /// Called after each wakeup, when all values are taken. Decides what the run does next.
    mutating func step(now: BootInstant) throws(CommandError) -> WatchStep<Outcome>
}

/// What a ``WatchSession`` does next.
enum WatchStep<Outcome> {
    case end(Outcome)
    /// Waits for a value; at most until this time, if there is one.
    case wait(until: BootInstant?)
}

extension WatchSession {
    /// Takes values until one of them, or a step, ends the run. Releases the sources of the values at the end.
    ///
    /// - Parameters:
    ///   - deadline: When to make a step without a value; `nil` for never.
    ///   - interval: How often to make a step without a value; `nil` for never.
    ///   - sources: Retained until the end of the run.
    mutating func watch(
        deadline: BootInstant? = nil,
        interval: Duration? = nil,
        _ sources: [AnyObject]
    ) async throws(CommandError) -> Outcome {
        let inbox = inbox
        let timer = try CommandTimer(deadline: deadline, interval: interval) { inbox.wake() }
        defer { withExtendedLifetime((timer, sources)) {} }
        for await _ in inbox.wakeups {
            let now = BootInstant.now
            for (source, value) in inbox.take() {
                if let outcome = try take(value, from: source, now: now) { return outcome }
            }
            switch try step(now: now) {
            case .end(let outcome): return outcome
            case .wait(nil): break
            case .wait(let due?): timer.reschedule(at: due)
            }
        }
        throw CommandError(.unknown, "the wait was cancelled")
    }
}

extension PathMonitor {
    /// Watches targets, and probes those that have a probe.
    ///
    /// - Parameters:
    ///   - onStatus: Called with the index of the target and its status. A path that was not probed yet has no result.
    /// - Returns: The watches, which last until they are released.
    func watch(
        _ targets: [PathTarget],
        probes: [(any Probe)?],
        interval: Duration = PathValidator.defaultInterval,
        onStatus: @escaping @Sendable (Int, ValidatedStatus) -> Void
    ) -> [AnyObject] {
        zip(targets, probes).enumerated().map { index, entry -> AnyObject in
            let (target, probe) = entry
            guard let probe else {
                return watch(target) { onStatus(index, ValidatedStatus(status: $0, probe: nil)) }
            }
            return PathValidator(monitor: self, target: target, probe: probe, interval: interval) {
                onStatus(index, $0)
            }
        }
    }
}

extension CommandError {
    /// Creates the error of a command whose wait has timed out.
    ///
    /// - Parameters:
    ///   - missing: What is not met, for people.
    ///   - count: The number of conditions that are not met.
    init(timedOutAfter timeout: Duration?, missing: some Sequence<String>, of count: Int) {
        let missing = Array(missing)
        let more = count > missing.count ? ["and \(count - missing.count) more"] : []
        let after = DurationText.format(timeout ?? .zero)
        self.init(.no, "timed out after \(after): " + (missing + more).joined(separator: ", "))
    }
}

/// A buffer for values from other threads until the command reads them. Keeps only the newest value per source, so it
/// does not grow while the reader is slow. `take()` orders the sources by their oldest unread value.
final class Inbox<Value: Sendable>: Sendable {
    private struct State {
        var newest: [Int: Value] = [:]
        var order: [Int] = []
    }

    private let state = Lock(State())
    private let continuation: AsyncStream<Void>.Continuation
    /// Yields whenever there may be values to take. Supports a single reader.
    let wakeups: AsyncStream<Void>

    init() {
        (wakeups, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Stores a value, which replaces the source's unread value. Can be called from any thread.
    func put(_ value: Value, from source: Int) {
        state.withLock { state in
            if state.newest.updateValue(value, forKey: source) == nil { state.order.append(source) }
        }
        continuation.yield()
    }

    /// Wakes the reader without a new value. Can be called from any thread.
    func wake() {
        continuation.yield()
    }

    /// Returns and removes all values.
    func take() -> [(source: Int, value: Value)] {
        let taken = state.withLock { state in
            defer { state = State() }
            return state
        }
        return taken.order.map { ($0, taken.newest[$0]!) }
    }
}

/// A timer that calls a handler at a deadline, at an interval, or both. Its clock continues while the machine sleeps.
/// The timer runs as long as it is retained.
final class CommandTimer: Sendable {
    private let loop: EventLoop
    private let onTick: @Sendable () -> Void
    private let movable = Lock<EventLoop.Timer?>(nil)

    /// - Parameters:
    ///   - deadline: When to call the handler once; `nil` for never.
    ///   - interval: How often to call the handler; `nil` for never.
    ///   - onTick: Called on the timer's thread.
    init(
        deadline: BootInstant?,
        interval: Duration? = nil,
        onTick: @escaping @Sendable () -> Void
    ) throws(CommandError) {
        do {
            loop = try EventLoop(label: "nw-timer")
        } catch {
            throw CommandError(.unknown, "could not start a timer: \(error)")
        }
        self.onTick = onTick
        if let deadline { loop.schedule(at: deadline, onTick) }
        if let interval { repeatEvery(interval) }
    }

    /// Schedules one call at `deadline`. Cancels the call of an earlier `reschedule(at:)`.
    func reschedule(at deadline: BootInstant) {
        let new = loop.schedule(at: deadline, onTick)
        let old = movable.withLock { timer in
            defer { timer = new }
            return timer
        }
        if let old { loop.cancel(old) }
    }

    private func repeatEvery(_ interval: Duration) {
        loop.schedule(at: .now + interval) { [weak self] in
            self?.onTick()
            self?.repeatEvery(interval)
        }
    }
}

/// Passes the snapshots of a monitor to a handler: the current one, and then one for each change. It lasts until it is
/// released.
final class SnapshotWatch: Sendable {
    private let reading: Task<Void, Never>

    /// - Parameter onSnapshot: Called with each snapshot, or with the error that makes netlink unavailable.
    init(
        _ monitor: PathMonitor = .shared,
        onSnapshot: @escaping @Sendable (Result<NetworkSnapshot, CommandError>) -> Void
    ) {
        reading = Task {
            for await snapshot in monitor.snapshots {
                if let failure = monitor.failure {
                    onSnapshot(.failure(CommandError(netlink: failure)))
                } else {
                    onSnapshot(.success(snapshot))
                }
            }
        }
    }

    deinit {
        reading.cancel()
    }
}

extension CommandError {
    /// Creates the error of a command that cannot work without netlink.
    init(netlink error: SystemError) {
        self.init(.unknown, "netlink is unavailable (\(error)), so the state is unknown")
    }
}
