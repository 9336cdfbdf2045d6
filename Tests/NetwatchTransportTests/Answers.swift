internal import Synchronization

/// Hands out its values one after another, and the last one for ever.
final class Answers<Value: Sendable>: Sendable {
    private let rest: Mutex<[Value]>

    init(_ values: [Value]) { rest = Mutex(values.reversed()) }

    func next() -> Value {
        rest.withLock { $0.count > 1 ? $0.removeLast() : $0[0] }
    }
}
