internal import NetwatchEventLoop

/// Calls of the program's code, such as adapters and providers of credentials. Such a call may never return, and may
/// then block a thread for ever. Each call has a key: the host or the credential for which it is made.
///
/// A caller waits for a limited time, which includes the wait for other calls. When this time has ended, its call is
/// *overdue*, even if the caller was cancelled earlier. These rules limit the calls that can hang, without letting one
/// key delay another:
///
/// - The calls for a key run in parallel only if the last one that returned was in time, and none is overdue. Otherwise
///   they run one at a time. Overdue calls do not count.
/// - Calls in parallel share ``maximumParallel`` places among all keys. A call without a place waits for another call for
///   its key. The first call for a key needs no place.
/// - While ``maximumOverduePerKey`` calls for a key are overdue, other calls for the key are refused. Unless many other
///   calls are overdue, a single call that never returns does not block its key.
/// - While ``maximumOverdue`` calls are overdue, calls for keys with an overdue call are refused.
/// - While ``maximumOverdueKeys`` keys have overdue calls, calls for other keys are refused.
///
/// A waiting call begins, or is refused, when a call for its key is added, returns, or becomes overdue. Calls that are in
/// progress when a limit is reached may become overdue, too. So at most 128 calls are overdue, ``maximumOverdue`` and one
/// for each of ``maximumOverdueKeys`` keys, and as many as the caller makes at a time.
final class KeyedCalls<Key: Hashable & Sendable>: Sendable {
    /// The reason why a call was not made.
    enum Refusal: Error {
        /// Too many calls for the same key are overdue, or too many calls and one of them is for the same key.
        case overdue
        /// ``KeyedCalls/maximumOverdueKeys`` other keys have overdue calls.
        case tooManyOverdueKeys
    }

    /// The maximum number of keys with overdue calls. Dispatch starts at most 255 threads, and the process needs some of
    /// them for other work.
    static var maximumOverdueKeys: Int { 64 }
    /// The number of overdue calls for a key from which further ones are refused.
    static var maximumOverduePerKey: Int { 4 }
    /// The number of overdue calls from which keys with an overdue call are refused further ones.
    static var maximumOverdue: Int { 64 }
    /// The maximum number of calls that run in addition to the first call for each key.
    static var maximumParallel: Int { 16 }
    /// The maximum number of keys that are known to return in time. A further one makes the others unknown again.
    private static var maximumProven: Int { 1024 }

    /// The maximum time for which a caller waits, and after which a call is overdue. A change applies to later calls.
    var timeout: Duration {
        get { limit.withLock { $0 } }
        set { limit.withLock { $0 = newValue } }
    }

    private let limit: Lock<Duration>
    private let clock: any Clock<Duration>
    /// Returns the time since the creation of this object.
    private let now: @Sendable () -> Duration
    private let state = Lock(State())

    /// - Parameters:
    ///   - timeout: The value of ``timeout``.
    ///   - clock: The clock of the timeout.
    init<Time: Clock>(timeout: Duration, clock: Time = ContinuousClock()) where Time.Duration == Duration {
        let start = clock.now
        limit = Lock(timeout)
        self.clock = clock
        now = { start.duration(to: clock.now) }
    }

    /// Calls `body` as soon as the calls in progress permit it, and returns its result.
    ///
    /// After the timeout, or if the task is cancelled, `body` is cancelled but not waited for.
    ///
    /// - Throws: ``Refusal``, ``TimedCall/Timeout``, `CancellationError`, or the error of `body`.
    func run<Value: Sendable>(
        for key: Key,
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let timeout = timeout
        let deadline = now() + timeout
        do {
            return try await TimedCall.run(within: timeout, clock: clock) { [self] in
                let call = try await begin(key, deadline: deadline)
                // The caller may have stopped waiting just before the call was permitted.
                guard !Task.isCancelled else {
                    end(call, key, hasRun: false)
                    throw CancellationError()
                }
                defer { end(call, key, hasRun: true) }
                return try await body()
            }
        } catch {
            // The call may still be in progress. From its deadline on it no longer delays the others.
            if error is TimedCall.Timeout || Task.isCancelled { advance(key, at: deadline) }
            throw error
        }
    }

    /// Begins or refuses waiting calls for a key at this time, or immediately if it has passed.
    private func advance(_ key: Key, at time: Duration) {
        guard time > now() else { return state.withLock { $0.advance(key, at: now()) } }
        Task {
            try await Task.sleep(for: time - now(), clock: clock)
            state.withLock { $0.advance(key, at: now()) }
        }
    }

    /// Returns how many calls for a key are in progress, and how many have not begun. For tests.
    func count(of key: Key) -> (inProgress: Int, waiting: Int) { state.withLock { $0.count(of: key) } }

    /// Waits until a call may begin, and returns its number.
    private func begin(_ key: Key, deadline: Duration) async throws -> Int {
        let call = state.withLock { $0.nextCall() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (waiter: Waiter) in
                state.withLock { state in
                    // A cancellation before this moment has found no waiter to remove.
                    guard !Task.isCancelled else { return waiter.resume(throwing: CancellationError()) }
                    state.add(Waiting(call: call, deadline: deadline, waiter: waiter), key, at: now())
                }
            }
        } onCancel: {
            state.withLock { $0.removeWaiter(call, key) }?.resume(throwing: CancellationError())
        }
        return call
    }

    /// Records that a call has returned.
    ///
    /// - Parameter hasRun: Whether the program's code was called.
    private func end(_ call: Int, _ key: Key, hasRun: Bool) {
        state.withLock { $0.remove(call, key, hasRun: hasRun, at: now()) }
    }
}

extension KeyedCalls {
    private typealias Waiter = CheckedContinuation<Void, any Error>

    /// A call that has not begun.
    private struct Waiting {
        let call: Int
        /// The time from which the call is overdue if it has begun.
        let deadline: Duration
        let waiter: Waiter
    }

    /// The calls for a key.
    private struct Calls {
        /// The deadlines of the calls in progress, by the number of the call.
        var deadlines: [Int: Duration] = [:]
        /// The calls that have not begun, in order.
        var waiting: [Waiting] = []

        func overdueCount(at now: Duration) -> Int { deadlines.values.count { $0 <= now } }
    }

    private struct State {
        /// The calls by key. Each key has a call in progress or a waiting one.
        private var calls: [Key: Calls] = [:]
        /// The keys whose last call that returned was not overdue.
        private var proven: Set<Key> = []
        private var lastCall = 0

        mutating func nextCall() -> Int {
            lastCall += 1
            return lastCall
        }

        func count(of key: Key) -> (inProgress: Int, waiting: Int) {
            (calls[key]?.deadlines.count ?? 0, calls[key]?.waiting.count ?? 0)
        }

        /// Adds a call, which begins as soon as the rules permit it, or is refused.
        mutating func add(_ call: Waiting, _ key: Key, at now: Duration) {
            if let refusal = refusal(of: key, at: now) { return call.waiter.resume(throwing: refusal) }
            calls[key, default: Calls()].waiting.append(call)
            advance(key, at: now)
        }

        /// Removes a call that has not begun, and returns its waiter.
        mutating func removeWaiter(_ call: Int, _ key: Key) -> Waiter? {
            guard let index = calls[key]?.waiting.firstIndex(where: { $0.call == call }) else { return nil }
            defer { removeIfEmpty(key) }
            return calls[key]!.waiting.remove(at: index).waiter
        }

        private mutating func removeIfEmpty(_ key: Key) {
            if let own = calls[key], own.deadlines.isEmpty, own.waiting.isEmpty { calls[key] = nil }
        }

        /// Removes a call that has returned.
        mutating func remove(_ call: Int, _ key: Key, hasRun: Bool, at now: Duration) {
            guard let deadline = calls[key]?.deadlines.removeValue(forKey: call) else { return }
            if hasRun { setProven(key, deadline > now) }
            advance(key, at: now)
            removeIfEmpty(key)
        }

        private mutating func setProven(_ key: Key, _ isProven: Bool) {
            if !isProven { proven.remove(key) }
            guard isProven, !proven.contains(key) else { return }
            if proven.count >= KeyedCalls.maximumProven { proven = [] }
            proven.insert(key)
        }

        /// Begins the waiting calls for a key that the rules permit. If the rules refuse calls for the key, none of them
        /// waits any longer. A call whose caller is about to give up does not begin.
        mutating func advance(_ key: Key, at now: Duration) {
            while let next = calls[key]?.waiting.first(where: { $0.deadline > now }) {
                // A waiter is only scheduled, so the lock may be held.
                if let refusal = refusal(of: key, at: now) {
                    removeWaiter(next.call, key)!.resume(throwing: refusal)
                } else if permitsCall(key, at: now) {
                    calls[key]!.deadlines[next.call] = next.deadline
                    removeWaiter(next.call, key)!.resume()
                } else {
                    return
                }
            }
        }

        private func refusal(of key: Key, at now: Duration) -> Refusal? {
            let counts = calls.values.map { $0.overdueCount(at: now) }
            if let own = calls[key] {
                let count = own.overdueCount(at: now)
                let isFull = counts.reduce(0, +) >= KeyedCalls.maximumOverdue
                return count >= KeyedCalls.maximumOverduePerKey || (count > 0 && isFull) ? .overdue : nil
            }
            let keys = counts.count { $0 > 0 }
            return keys >= KeyedCalls.maximumOverdueKeys ? .tooManyOverdueKeys : nil
        }

        private func permitsCall(_ key: Key, at now: Duration) -> Bool {
            guard let own = calls[key] else { return true }
            let overdueCount = own.overdueCount(at: now)
            if own.deadlines.count == overdueCount { return true }
            return proven.contains(key) && overdueCount == 0
                && parallelCount(at: now) < KeyedCalls.maximumParallel
        }

        /// The number of calls that run in addition to the first call for each key. Overdue calls do not count.
        private func parallelCount(at now: Duration) -> Int {
            calls.values.reduce(0) { $0 + max(0, $1.deadlines.count - $1.overdueCount(at: now) - 1) }
        }
    }
}
