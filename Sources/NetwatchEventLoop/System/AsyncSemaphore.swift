/// A counting semaphore for tasks. A task that waits does not block its thread.
///
/// Waiting tasks get a permit in the order in which they arrived. If tasks of several groups wait, the groups take turns,
/// so that a group with many tasks does not delay the others.
package final class AsyncSemaphore: Sendable {
    /// The group of a task, for example the id of its user; `nil` is a group, too.
    package typealias Group = UInt32?

    private struct Waiter {
        let id: UInt64
        let group: Group
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var permits: Int
        /// In the order of their arrival.
        var waiters: [Waiter] = []
        /// The number of the last turn of each group. Empty after a permit was released for which no task waited.
        var turns: [Group: UInt64] = [:]
        var lastID: UInt64 = 0
        var lastTurn: UInt64 = 0

        mutating func beginTurn(of group: Group) {
            lastTurn += 1
            turns[group] = lastTurn
        }

        /// Removes the waiter that gets the next permit.
        mutating func removeNext() -> Waiter? {
            func rank(_ index: Int) -> (UInt64, Int) { (turns[waiters[index].group, default: 0], index) }
            guard let index = waiters.indices.min(by: { rank($0) < rank($1) }) else { return nil }
            return waiters.remove(at: index)
        }
    }

    private let state: Lock<State>

    /// - Parameter permits: The maximum number of tasks that hold a permit at the same time.
    package init(permits: Int) {
        state = Lock(State(permits: permits))
    }

    /// The number of waiting tasks. For tests.
    package var waitingCount: Int { state.withLock { $0.waiters.count } }

    /// Notified when a task begins to wait. `ProbeLimitTests` waits for it before it checks that no probe has started.
    package let arrivals = ChangeWaiters()

    /// Runs `body` while it holds a permit.
    ///
    /// - Parameter group: The group of the task. Default: `nil`.
    /// - Throws: `CancellationError` if the task is cancelled while it waits, and the errors of `body`.
    package func run<Value>(for group: Group = nil, _ body: () async throws -> Value) async throws -> Value {
        try await acquire(for: group)
        defer { release() }
        return try await body()
    }

    /// Waits for a permit. The caller must call ``release()`` afterwards.
    ///
    /// - Parameter group: The group of the task. Default: `nil`.
    /// - Throws: `CancellationError` if the task is cancelled before it has a permit. It then has none to release.
    package func acquire(for group: Group = nil) async throws {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation {
                wait(Waiter(id: id, group: group, continuation: $0))
            }
        } onCancel: {
            cancelWait(id)
        }
    }

    /// Releases a permit. Of the group whose last turn is the longest ago, the task that has waited longest gets it.
    package func release() {
        let next = state.withLock { state -> Waiter? in
            guard let next = state.removeNext() else {
                state.permits += 1
                state.turns = [:]
                return nil
            }
            state.beginTurn(of: next.group)
            return next
        }
        next?.continuation.resume()
    }

    private func wait(_ waiter: Waiter) {
        let result = state.withLock { state -> Result<Void, any Error>? in
            // Checked under the lock: if the task is cancelled after this check, `cancelWait` finds the waiter.
            guard !Task.isCancelled else { return .failure(CancellationError()) }
            guard state.permits > 0 else {
                state.waiters.append(waiter)
                return nil
            }
            state.permits -= 1
            state.beginTurn(of: waiter.group)
            return .success(())
        }
        if let result { waiter.continuation.resume(with: result) } else { arrivals.changed() }
    }

    private func cancelWait(_ id: UInt64) {
        let waiter = state.withLock { state in
            state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0) }
        }
        waiter?.continuation.resume(throwing: CancellationError())
    }
}

/// The calls that wait for a change. Each change wakes all of them, and each then checks its condition again.
package final class ChangeWaiters: Sendable {
    private struct State {
        var generation = 0
        var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
        var nextWaiter = 0
    }

    private let state = Lock(State())

    package init() {}

    /// The number of changes so far. A caller reads it before it checks its condition, and passes it to
    /// ``wait(after:)``, so that it misses no change in between.
    package var generation: Int { state.withLock { $0.generation } }

    /// Wakes all waiting calls.
    package func changed() {
        let waiters = state.withLock { state in
            state.generation += 1
            defer { state.waiters = [:] }
            return state.waiters
        }
        for waiter in waiters.values { waiter.resume() }
    }

    /// Waits until ``generation`` exceeds the given number. Returns immediately if it already does.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    package func wait(after generation: Int) async throws {
        let id = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    guard state.generation == generation, !Task.isCancelled else { return true }
                    state.waiters[id] = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: id) }?.resume()
        }
        try Task.checkCancellation()
    }
}
