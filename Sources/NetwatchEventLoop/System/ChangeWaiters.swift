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
