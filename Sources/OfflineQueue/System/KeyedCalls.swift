internal import Synchronization

/// Calls of the program's code, such as adapters and providers of credentials. Such a call may never return, and may
/// then block a thread for ever. Each call has a key: the host or the credential for which it is made.
///
/// A caller waits for a limited time. A call that has lasted longer is *overdue*, whether or not its caller still waits.
/// These rules limit the calls that can hang, without letting one key delay another:
///
/// - The calls for a key run in parallel only if the last one that returned was in time, and none is overdue. Otherwise
///   they run one at a time.
/// - Calls in parallel share ``maximumParallel`` places among all keys. A call without a place waits for another call for
///   its key. The first call for a key needs no place.
/// - While ``maximumOverduePerKey`` calls for a key are overdue, other calls for the key are refused. Unless many other
///   calls are overdue, a single call that never returns does not block its key.
/// - While ``maximumOverdue`` calls are overdue, calls for keys with an overdue call are refused.
/// - While ``maximumOverdueKeys`` keys have overdue calls, calls for other keys are refused.
///
/// A waiting call begins when a call for its key returns or is added. Calls that are in progress when a limit is reached
/// may become overdue, too. So at most 128 calls are overdue, ``maximumOverdue`` and one for each of
/// ``maximumOverdueKeys`` keys, and as many as the caller makes at a time.
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

    private let timeout: Duration
    private let now: @Sendable () -> ContinuousClock.Instant
    private let state = Mutex(State())

    /// - Parameters:
    ///   - timeout: The maximum time for which a caller waits, and after which a call is overdue.
    ///   - now: The clock that determines whether a call is overdue.
    init(timeout: Duration, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        self.timeout = timeout
        self.now = now
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
        try await TimedCall.run(within: timeout) { [self] in
            let call = try await begin(key)
            // The caller may have stopped waiting just before the call was permitted.
            guard !Task.isCancelled else {
                end(call, key, hasRun: false)
                throw CancellationError()
            }
            defer { end(call, key, hasRun: true) }
            return try await body()
        }
    }

    /// Returns the number of calls for a key that have not begun. For tests.
    func waitingCalls(for key: Key) -> Int { state.withLock { $0.waitingCalls(for: key) } }

    /// Waits until a call may begin, and returns its number.
    private func begin(_ key: Key) async throws -> Int {
        let call = state.withLock { $0.nextCall() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let now = now()
                let refused = state.withLock { state -> (any Error)? in
                    // A cancellation before this moment has found no waiter to remove.
                    if Task.isCancelled { return CancellationError() }
                    return state.add(call, key, continuation, at: now, overdue: now - timeout)
                }
                if let refused { continuation.resume(throwing: refused) }
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
        let now = now()
        state.withLock { $0.remove(call, key, hasRun: hasRun, at: now, overdue: now - timeout) }
    }
}

extension KeyedCalls {
    private typealias Waiter = CheckedContinuation<Void, any Error>

    /// The calls for a key.
    private struct Calls {
        /// The times at which the calls in progress began, by the number of the call.
        var began: [Int: ContinuousClock.Instant] = [:]
        /// The calls that have not begun, in order.
        var waiting: [(call: Int, waiter: Waiter)] = []

        func overdueCount(_ overdue: ContinuousClock.Instant) -> Int {
            began.values.count { $0 <= overdue }
        }
    }

    private struct State {
        /// The calls by key. Each key has a call in progress.
        private var calls: [Key: Calls] = [:]
        /// The keys whose last call that returned was not overdue.
        private var proven: Set<Key> = []
        private var lastCall = 0

        mutating func nextCall() -> Int {
            lastCall += 1
            return lastCall
        }

        func waitingCalls(for key: Key) -> Int { calls[key]?.waiting.count ?? 0 }

        /// Adds a call, which begins as soon as the rules permit it. Returns the reason if the call is refused.
        ///
        /// - Parameter overdue: The start time up to which a call counts as overdue at `now`.
        mutating func add(
            _ call: Int,
            _ key: Key,
            _ waiter: Waiter,
            at now: ContinuousClock.Instant,
            overdue: ContinuousClock.Instant
        ) -> Refusal? {
            if let refusal = refusal(of: key, overdue) { return refusal }
            calls[key, default: Calls()].waiting.append((call, waiter))
            beginPermitted(key, at: now, overdue)
            return nil
        }

        /// Removes a call that has not begun, and returns its waiter.
        mutating func removeWaiter(_ call: Int, _ key: Key) -> Waiter? {
            guard let index = calls[key]?.waiting.firstIndex(where: { $0.call == call }) else { return nil }
            return calls[key]!.waiting.remove(at: index).waiter
        }

        /// Removes a call that has returned, and begins the calls that the rules now permit.
        mutating func remove(
            _ call: Int,
            _ key: Key,
            hasRun: Bool,
            at now: ContinuousClock.Instant,
            overdue: ContinuousClock.Instant
        ) {
            guard let began = calls[key]?.began.removeValue(forKey: call) else { return }
            if hasRun { setProven(key, began > overdue) }
            beginPermitted(key, at: now, overdue)
            if calls[key]!.began.isEmpty { calls[key] = nil }
        }

        private mutating func setProven(_ key: Key, _ isProven: Bool) {
            if !isProven { proven.remove(key) }
            guard isProven, !proven.contains(key) else { return }
            if proven.count >= KeyedCalls.maximumProven { proven = [] }
            proven.insert(key)
        }

        private func refusal(of key: Key, _ overdue: ContinuousClock.Instant) -> Refusal? {
            let counts = calls.values.map { $0.overdueCount(overdue) }
            if let own = calls[key] {
                let count = own.overdueCount(overdue)
                let isFull = counts.reduce(0, +) >= KeyedCalls.maximumOverdue
                return count >= KeyedCalls.maximumOverduePerKey || (count > 0 && isFull) ? .overdue : nil
            }
            let keys = counts.count { $0 > 0 }
            return keys >= KeyedCalls.maximumOverdueKeys ? .tooManyOverdueKeys : nil
        }

        private mutating func beginPermitted(
            _ key: Key,
            at now: ContinuousClock.Instant,
            _ overdue: ContinuousClock.Instant
        ) {
            while let next = calls[key]?.waiting.first, permitsCall(key, overdue) {
                calls[key]!.waiting.removeFirst()
                calls[key]!.began[next.call] = now
                // Only schedules the waiter's task, so the lock may be held.
                next.waiter.resume()
            }
        }

        private func permitsCall(_ key: Key, _ overdue: ContinuousClock.Instant) -> Bool {
            guard let own = calls[key] else { return true }
            let overdueCount = own.overdueCount(overdue)
            if own.began.count == overdueCount { return true }
            return proven.contains(key) && overdueCount == 0
                && parallelCount(overdue) < KeyedCalls.maximumParallel
        }

        /// The number of calls that run in addition to the first call for each key. Overdue calls do not count.
        private func parallelCount(_ overdue: ContinuousClock.Instant) -> Int {
            calls.values.reduce(0) { $0 + max(0, $1.began.count - $1.overdueCount(overdue) - 1) }
        }
    }
}
