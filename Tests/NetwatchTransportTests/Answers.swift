internal import NetwatchEventLoop

/// A sequence of values whose last value is repeated for ever.
final class Answers<Value: Sendable>: Sendable {
    private let rest: Lock<[Value]>

    init(_ values: [Value]) { rest = Lock(values.reversed()) }

    func next() -> Value {
        rest.withLock { $0.count > 1 ? $0.removeLast() : $0[0] }
    }
}
