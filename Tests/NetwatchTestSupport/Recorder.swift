internal import Dispatch
internal import NetwatchEventLoop

/// Collects values from any thread. A test waits for the expected values instead of a fixed time.
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

    private let state = Lock(State())
    private let closed = DispatchSemaphore(value: 0)

    package init() {}

    /// Lets ``waitForClosing()`` return, because nothing more will be recorded.
    package func close() { closed.signal() }

    /// Blocks the thread until ``close()`` is called. Only one thread may call this method, and only once.
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
    /// - Parameters:
    ///   - timeout: The limit on the duration of a failing test. Default: 50 s. It must be shorter than a monitor's
    ///     audit interval (60 s), because an audit would repair a missed change.
    ///   - isSatisfied: The condition. It receives all values so far.
    /// - Throws: ``TimeOut`` with the values after `timeout`.
    package func wait(
        timeout: Duration = .seconds(50),
        until isSatisfied: @escaping @Sendable ([Value]) -> Bool
    ) async throws {
        _ = resumer
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        var expiry: Task<Void, any Error>?
        let isSeen = await withCheckedContinuation { continuation in
            let waiter = Waiter(id: id, isSatisfied: isSatisfied, continuation: continuation)
            let isSeen = state.withLock { state in
                if isSatisfied(state.values) { return true }
                state.waiters.append(waiter)
                return false
            }
            if isSeen { return continuation.resume(returning: true) }
            // Begins only now, because an expiry before the waiter is added would have no effect.
            expiry = Task {
                try await Task.sleep(for: timeout)
                expire(id)
            }
        }
        expiry?.cancel()
        if !isSeen { throw TimeOut(seen: "\(values)") }
    }

    /// Waits until the newest value satisfies a condition. The same as ``wait(timeout:until:)`` in all other respects.
    package func waitForLast(
        timeout: Duration = .seconds(50),
        _ isSatisfied: @escaping @Sendable (Value) -> Bool
    ) async throws {
        try await wait(timeout: timeout) { $0.last.map(isSatisfied) ?? false }
    }

    /// Waits until a condition holds. Checks it immediately, and again after each record. For conditions that depend on
    /// more than the values, for example on the answer of a service whose events are recorded.
    ///
    /// - Parameters:
    ///   - timeout: The maximum time without a record.
    ///   - isSatisfied: The condition.
    /// - Throws: The error of the condition. ``TimeOut`` if nothing is recorded for `timeout`.
    package func until(timeout: Duration, _ isSatisfied: () async throws -> Bool) async throws {
        while true {
            // Counted before the check, so that a record during the check causes another one.
            let count = values.count
            if try await isSatisfied() { return }
            try await wait(timeout: timeout) { $0.count > count }
        }
    }

    private func expire(_ id: Int) {
        let waiter = state.withLock { state -> Waiter? in
            guard let index = state.waiters.firstIndex(where: { $0.id == id }) else { return nil }
            return state.waiters.remove(at: index)
        }
        waiter?.continuation.resume(returning: false)
    }
}

/// The loop whose thread resumes waiting tests.
///
/// `Recorder.record` may run on a thread with restrictions, such as a seccomp filter. If that thread resumed a task, it
/// might start a worker thread of Dispatch, which would inherit the restrictions. The loop's thread has none, because a
/// waiting test starts it.
private let resumer: EventLoop = {
    do throws(SystemError) {
        return try EventLoop(label: "test-resumer")
    } catch {
        preconditionFailure("\(error)")
    }
}()

/// The error for expected values that were not recorded in time. Its message contains the values that were.
package struct TimeOut: Error, CustomStringConvertible {
    package let seen: String

    package var description: String { "timed out; seen: \(seen)" }
}
