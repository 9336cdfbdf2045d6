package import NetwatchEventLoop

/// A signal on which waiting tests check their conditions again.
package final class ChangeSignal: Sendable {
    private struct State {
        var waiters: [Int: AsyncStream<Void>.Continuation] = [:]
        var nextID = 0
    }

    private let state = Lock(State())

    package init() {}

    /// Makes every waiting call of ``until(_:)`` check its condition again. Can be called from any thread.
    package func post() {
        for waiter in state.withLock({ Array($0.waiters.values) }) { waiter.yield() }
    }

    /// Waits until a condition holds. Checks it immediately, and again after each ``post()``.
    ///
    /// - Throws: The error of the condition. `CancellationError` if the task is cancelled, for example by the test's
    ///   time limit.
    package func until(_ isSatisfied: () async throws -> Bool) async throws {
        let (signals, waiter) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let id = add(waiter)
        defer { state.withLock { $0.waiters[id] = nil } }
        // Registered before the first check, so that a signal between a check and the wait is buffered.
        if try await isSatisfied() { return }
        for await _ in signals {
            if try await isSatisfied() { return }
        }
        throw CancellationError()
    }

    private func add(_ waiter: AsyncStream<Void>.Continuation) -> Int {
        state.withLock { state in
            state.nextID += 1
            state.waiters[state.nextID] = waiter
            return state.nextID
        }
    }
}

extension ChangeWaiters {
    /// Waits until a condition holds. Checks it immediately, and again after each change.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    package func until(_ isSatisfied: () -> Bool) async throws {
        while true {
            let generation = generation
            if isSatisfied() { return }
            try await wait(after: generation)
        }
    }
}
