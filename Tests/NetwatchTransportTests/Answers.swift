internal import Synchronization

/// Returns its values in order, and then repeats the last one.
final class Answers<Value: Sendable>: Sendable {
    private let rest: Mutex<[Value]>

    init(_ values: [Value]) { rest = Mutex(values.reversed()) }

    func next() -> Value {
        rest.withLock { $0.count > 1 ? $0.removeLast() : $0[0] }
    }
}
