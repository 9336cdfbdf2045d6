internal import NetwatchEventLoop

/// A value that is created from a source on first access. All copies of a response share one `LazyValue`.
///
/// The source is separate from the closure, so that a closure without captures needs no memory.
final class LazyValue<Source: Sendable, Value: Sendable>: Sendable {
    private enum State: Sendable {
        case pending(Source, @Sendable (Source) -> Value)
        case created(Value)
    }

    private let state: Lock<State>

    /// - Parameters:
    ///   - source: What the value is created from. Released when the value has been created.
    ///   - create: Creates the value. Called at most once, under a lock.
    init(_ source: Source, create: @escaping @Sendable (Source) -> Value) {
        state = Lock(.pending(source, create))
    }

    /// Wraps an existing value.
    init(value: Value) {
        state = Lock(.created(value))
    }

    var value: Value {
        state.withLock { state in
            switch state {
            case .created(let value): return value
            case .pending(let source, let create):
                let value = create(source)
                state = .created(value)
                return value
            }
        }
    }
}
