internal import Synchronization

/// A value that is created on first access. All copies of a response share one `LazyValue`.
final class LazyValue<Value: Sendable>: Sendable {
    private enum State: Sendable {
        case pending(@Sendable () -> Value)
        case created(Value)
    }

    private let state: Mutex<State>

    /// - Parameter create: Creates the value. Called at most once, under a lock.
    init(_ create: @escaping @Sendable () -> Value) {
        state = Mutex(.pending(create))
    }

    /// Wraps an existing value.
    init(value: Value) {
        state = Mutex(.created(value))
    }

    var value: Value {
        state.withLock { state in
            switch state {
            case .created(let value): return value
            case .pending(let create):
                let value = create()
                state = .created(value)
                return value
            }
        }
    }
}
