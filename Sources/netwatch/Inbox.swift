internal import Synchronization

/// Collects what other threads report until the command gets to it: of each source only the newest, so that
/// a slow reader costs no memory. The order is that of the sources' oldest news.
final class Inbox<Value: Sendable>: Sendable {
    private struct State {
        var newest: [Int: Value] = [:]
        var order: [Int] = []
    }

    private let state = Mutex(State())
    private let bell: AsyncStream<Void>.Continuation
    /// Has an element whenever there may be something to take. For one reader.
    let rings: AsyncStream<Void>

    init() {
        (rings, bell) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Leaves news of a source in place of what it left before. Callable from any thread.
    func put(_ value: Value, from source: Int) {
        state.withLock { state in
            if state.newest.updateValue(value, forKey: source) == nil { state.order.append(source) }
        }
        bell.yield()
    }

    /// Wakes the reader although there is nothing new. Callable from any thread.
    func ring() {
        bell.yield()
    }

    /// Takes everything.
    func take() -> [(source: Int, value: Value)] {
        let taken = state.withLock { state in
            defer { state = State() }
            return state
        }
        return taken.order.map { ($0, taken.newest[$0]!) }
    }
}
