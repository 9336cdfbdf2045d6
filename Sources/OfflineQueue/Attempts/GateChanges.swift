internal import NetwatchEventLoop

/// Passes the states of gates to the queue. The buffer holds at most one state per endpoint, the newest, and one task
/// reads it for all watches. A task and an `AsyncStream` for each watch would use about as much memory as everything
/// else that the queue knows of a host.
final class GateChanges: Sendable {
    /// A new state of an endpoint's gate.
    struct Change: Hashable, Sendable {
        let endpoint: Endpoint
        /// The number of the watch that has reported the state. Later watches have higher numbers.
        let watch: UInt64
        let state: GateState
    }

    private let waiting = Lock<[Endpoint: Change]>([:])
    private let signals: AsyncStream<Void>
    private let signal: AsyncStream<Void>.Continuation

    init() {
        (signals, signal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Buffers a state and wakes the reader. A late report of a watch that has ended does not replace one of the endpoint's
    /// next watch.
    func post(_ change: Change) {
        waiting.withLock { waiting in
            if let other = waiting[change.endpoint], other.watch > change.watch { return }
            waiting[change.endpoint] = change
        }
        signal.yield()
    }

    /// Waits for a change, and returns the changes since the last call in the order of their watches. Returns an empty array
    /// once the calling task is cancelled. Only one task may call this.
    func next() async -> [Change] {
        for await _ in signals {
            let changes = waiting.withLock { waiting in
                defer { waiting = [:] }
                return waiting.values.sorted { $0.watch < $1.watch }
            }
            if !changes.isEmpty { return changes }
        }
        return []
    }
}
