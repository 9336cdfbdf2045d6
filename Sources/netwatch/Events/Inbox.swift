internal import NetwatchEventLoop

/// A buffer for values from other threads until the command reads them. Keeps only the newest value per source, so it
/// does not grow while the reader is slow. `take()` orders the sources by their oldest unread value.
final class Inbox<Value: Sendable>: Sendable {
    private struct State {
        var newest: [Int: Value] = [:]
        var order: [Int] = []
    }

    private let state = Lock(State())
    private let continuation: AsyncStream<Void>.Continuation
    /// Yields whenever there may be values to take. Supports a single reader.
    let wakeups: AsyncStream<Void>

    init() {
        (wakeups, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Stores a value, which replaces the source's unread value. Can be called from any thread.
    func put(_ value: Value, from source: Int) {
        state.withLock { state in
            if state.newest.updateValue(value, forKey: source) == nil { state.order.append(source) }
        }
        continuation.yield()
    }

    /// Wakes the reader without a new value. Can be called from any thread.
    func wake() {
        continuation.yield()
    }

    /// Returns and removes all values.
    func take() -> [(source: Int, value: Value)] {
        let taken = state.withLock { state in
            defer { state = State() }
            return state
        }
        return taken.order.map { ($0, taken.newest[$0]!) }
    }
}
