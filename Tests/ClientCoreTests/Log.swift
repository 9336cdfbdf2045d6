internal import Synchronization

/// Values collected from other threads.
final class Log<Value: Sendable>: Sendable {
    private struct State {
        var values: [Value] = []
        var waiters: [(count: Int, wake: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    var values: [Value] { state.withLock { $0.values } }

    func append(_ value: Value) {
        let woken = state.withLock { state in
            state.values.append(value)
            let count = state.values.count
            let woken = state.waiters.filter { $0.count <= count }.map(\.wake)
            state.waiters.removeAll { $0.count <= count }
            return woken
        }
        for waiter in woken { waiter.resume() }
    }

    /// Waits until that many values have come.
    func count(atLeast count: Int) async {
        await withCheckedContinuation { wake in
            let isEnough = state.withLock { state in
                if state.values.count < count { state.waiters.append((count, wake)) }
                return state.values.count >= count
            }
            if isEnough { wake.resume() }
        }
    }
}
