internal import NetwatchEventLoop
internal import OfflineQueue

/// Keeps the latest events in memory for a while after the last client has disconnected, so that it can reconnect
/// without losing any.
final class EventRetention: Sendable {
    /// How long events are kept without a client: 5 minutes. Without this limit, the queue would record events forever
    /// after the first client.
    static let time: Duration = .seconds(300)

    private struct State {
        var clients = 0
        /// While this exists, the queue records events.
        var events: QueueEvents?
        var expiry: Task<Void, any Error>?
    }

    /// A function that calls a closure after a delay, unless the returned task is cancelled before.
    typealias Timer = @Sendable (Duration, _ body: @escaping @Sendable () -> Void) -> Task<Void, any Error>

    private let state = Lock(State())
    private let timer: Timer

    /// - Parameter timer: Starts the time limit. Tests replace it.
    init(
        timer: @escaping Timer = { time, body in
            Task {
                try await Task.sleep(for: time)
                body()
            }
        }
    ) {
        self.timer = timer
    }

    /// The right of one connected client. Its end starts the time limit if it was the last one.
    final class Client: Sendable {
        private let retention: EventRetention

        fileprivate init(_ retention: EventRetention) {
            self.retention = retention
        }

        deinit {
            retention.disconnected()
        }
    }

    func connected(to events: QueueEvents) -> Client {
        let expiry = state.withLock { state in
            state.clients += 1
            state.events = events
            defer { state.expiry = nil }
            return state.expiry
        }
        expiry?.cancel()
        return Client(self)
    }

    private func disconnected() {
        state.withLock { state in
            state.clients -= 1
            guard state.clients == 0 else { return }
            state.expiry = timer(Self.time) { [weak self] in self?.expire() }
        }
    }

    private func expire() {
        state.withLock { state in
            if state.clients == 0 { state.events = nil }
        }
    }
}
