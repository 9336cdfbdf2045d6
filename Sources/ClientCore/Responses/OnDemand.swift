internal import Synchronization

/// A value that is made when somebody looks at it for the first time, for all copies of what holds it.
final class OnDemand<Value: Sendable>: Sendable {
    private enum State: Sendable {
        case unmade(@Sendable () -> Value)
        case made(Value)
    }

    private let state: Mutex<State>

    /// - Parameter make: Called once at most, under a lock.
    init(_ make: @escaping @Sendable () -> Value) {
        state = Mutex(.unmade(make))
    }

    /// A value that is there.
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
