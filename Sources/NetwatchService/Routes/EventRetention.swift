internal import OfflineQueue
internal import Synchronization

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
        var expiry: Task<Void, Never>?
    }

    private let state = Mutex(State())
    private let sleep: @Sendable (Duration) async throws -> Void

    /// - Parameter sleep: Waits for a duration; throws if its task is cancelled.
    init(sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }) {
        self.sleep = sleep
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

    /// Waits until the current time limit has passed or a client has connected. For tests.
    func expiryEnds() async {
        await state.withLock { $0.expiry }?.value
    }

    private func disconnected() {
        state.withLock { state in
            state.clients -= 1
            guard state.clients == 0 else { return }
            state.expiry = Task { [weak self, sleep] in
                guard (try? await sleep(Self.time)) != nil else { return }
                self?.expire()
            }
        }
    }

    private func expire() {
        state.withLock { state in
            if state.clients == 0 { state.events = nil }
        }
    }
}
