internal import Synchronization

/// Limits how many tasks run at the same time. Waiting tasks run in the order in which they arrived.
final class ConcurrencyLimit: Sendable {
    private struct Waiter {
        let ticket: UInt64
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var free: Int
        var waiting: [Waiter] = []
        var lastTicket: UInt64 = 0
    }

    private let state: Mutex<State>

    /// - Parameter width: The maximum number of concurrent tasks.
    init(_ width: Int) {
        state = Mutex(State(free: width))
    }

    /// Runs `body` when a slot is free.
    ///
    /// - Throws: `CancellationError` if the task is cancelled while it waits, and the errors of `body`.
    func run<Value>(_ body: () async throws -> Value) async throws -> Value {
        try await enter()
        defer { leave() }
        return try await body()
    }

    /// The number of tasks that wait for a slot.
    var waitingCount: Int { state.withLock { $0.waiting.count } }

    private func enter() async throws {
        let ticket = state.withLock { state in
            state.lastTicket += 1
            return state.lastTicket
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { wait(Waiter(ticket: ticket, continuation: $0)) }
        } onCancel: {
            giveUp(ticket)
        }
    }

    private func wait(_ waiter: Waiter) {
        let entrance = state.withLock { state -> Result<Void, any Error>? in
            // If the task is cancelled after this check, `giveUp` gets the lock later and finds the waiter.
            guard !Task.isCancelled else { return .failure(CancellationError()) }
            guard state.free > 0 else {
                state.waiting.append(waiter)
                return nil
            }
            state.free -= 1
            return .success(())
        }
        if let entrance { waiter.continuation.resume(with: entrance) }
    }

    private func giveUp(_ ticket: UInt64) {
        let waiter = state.withLock { state in
            state.waiting.firstIndex { $0.ticket == ticket }.map { state.waiting.remove(at: $0) }
        }
        waiter?.continuation.resume(throwing: CancellationError())
    }

    private func leave() {
        let next = state.withLock { state -> Waiter? in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.free += 1
            return nil
        }
        next?.continuation.resume()
    }
}
