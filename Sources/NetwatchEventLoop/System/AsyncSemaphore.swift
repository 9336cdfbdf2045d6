/// A counting semaphore for tasks. A task that waits does not block its thread. Waiting tasks get a permit in the order
/// in which they arrived.
package final class AsyncSemaphore: Sendable {
    private struct Waiter {
        let id: UInt64
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var permits: Int
        var waiters: [Waiter] = []
        var lastID: UInt64 = 0
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
    /// - Throws: `CancellationError` if the task is cancelled while it waits, and the errors of `body`.
    package func run<Value>(_ body: () async throws -> Value) async throws -> Value {
        try await acquire()
        defer { release() }
        return try await body()
    }

    /// Waits for a permit. The caller must call ``release()`` afterwards.
    ///
    /// - Throws: `CancellationError` if the task is cancelled before it has a permit. It then has none to release.
    package func acquire() async throws {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { wait(Waiter(id: id, continuation: $0)) }
        } onCancel: {
            cancelWait(id)
        }
    }

    /// Releases a permit. The task that has waited longest gets it.
    package func release() {
        let next = state.withLock { state -> Waiter? in
            guard state.waiters.isEmpty else { return state.waiters.removeFirst() }
            state.permits += 1
            return nil
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
