internal import Synchronization

/// A value that is created on first access. Copies of a response share it.
final class OnDemand<Value: Sendable>: Sendable {
    private enum State: Sendable {
        case unmade(@Sendable () -> Value)
        case made(Value)
    }

    private let state: Mutex<State>

    /// - Parameter make: Creates the value. Called at most once, under a lock.
    init(_ make: @escaping @Sendable () -> Value) {
        state = Mutex(.unmade(make))
    }

    /// Wraps an existing value.
    init(made value: Value) {
        state = Mutex(.made(value))
    }

    var value: Value {
        state.withLock { state in
            switch state {
            case .made(let value): return value
            case .unmade(let make):
                let value = make()
                state = .made(value)
                return value
            }
        }
    }
}
