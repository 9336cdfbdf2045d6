internal import Dispatch
internal import NetwatchEventLoop
internal import Synchronization

/// Collects values from any thread, so that a test can wait for the expected values instead of a fixed time.
package final class Recorder<Value: Sendable>: Sendable {
    private struct Waiter {
        let id: Int
        let isSatisfied: @Sendable ([Value]) -> Bool
        let continuation: CheckedContinuation<Bool, Never>
    }

    private struct State {
        var values: [Value] = []
        var waiters: [Waiter] = []
        var nextID = 0
    }

    private let state = Mutex(State())
    private let closed = DispatchSemaphore(value: 0)

    package init() {}

    /// Signals that nothing more will be recorded.
    package func close() { closed.signal() }

    /// Blocks the thread until ``close()``. Only one thread may call this, and only once.
    package func waitForClosing() { closed.wait() }

    package var values: [Value] {
        state.withLock { $0.values }
    }

    package func record(_ value: Value) {
        let satisfied = state.withLock { state in
            state.values.append(value)
            let values = state.values
            let satisfied = state.waiters.filter { $0.isSatisfied(values) }
            state.waiters.removeAll { waiter in satisfied.contains { $0.id == waiter.id } }
            return satisfied
        }
        guard !satisfied.isEmpty else { return }
        resumer.execute {
            for waiter in satisfied { waiter.continuation.resume(returning: true) }
        }
    }

    /// Waits until the recorded values satisfy a condition.
    ///
    /// - Throws: ``TimeOut`` with the values after `timeout`, which only limits the duration of a failing test. The
    ///   default of 50 s is less than the interval of a monitor's audit, which would repair a missed change.
    package func wait(
        timeout: Duration = .seconds(50),
        until isSatisfied: @escaping @Sendable ([Value]) -> Bool
    ) async throws {
        _ = resumer
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        let expiry = Task {
            try await Task.sleep(for: timeout)
            expire(id)
        }
        defer { expiry.cancel() }
        let isSeen = await withCheckedContinuation { continuation in
            let waiter = Waiter(id: id, isSatisfied: isSatisfied, continuation: continuation)
            let isSeen = state.withLock { state in
                if isSatisfied(state.values) { return true }
                state.waiters.append(waiter)
                return false
            }
            if isSeen { continuation.resume(returning: true) }
        }
        if !isSeen { throw TimeOut(seen: "\(values)") }
    }

    /// Waits until the newest value satisfies a condition.
    package func waitForLast(
        timeout: Duration = .seconds(50),
        _ isSatisfied: @escaping @Sendable (Value) -> Bool
    ) async throws {
        try await wait(timeout: timeout) { $0.last.map(isSatisfied) ?? false }
    }

    private func expire(_ id: Int) {
        let waiter = state.withLock { state -> Waiter? in
            guard let index = state.waiters.firstIndex(where: { $0.id == id }) else { return nil }
            return state.waiters.remove(at: index)
        }
        waiter?.continuation.resume(returning: false)
    }
}

/// Resumes waiting tests. `Recorder.record` may run on a thread with restrictions, such as a seccomp filter. If that
/// thread resumed a task itself, it might start a worker of Dispatch, which would inherit them. This thread is started
/// by a waiting test instead.
private let resumer: EventLoop = {
    do throws(SystemError) {
        return try EventLoop(label: "test-resumer")
    } catch {
        preconditionFailure("\(error)")
    }
}()

/// The expected values were not recorded in time.
package struct TimeOut: Error, CustomStringConvertible {
    package let seen: String

    package var description: String { "timed out; seen: \(seen)" }
}
