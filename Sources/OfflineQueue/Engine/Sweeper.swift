internal import NetwatchEventLoop

/// The timer of ``OfflineQueue/sweep()``, which waits between two sweeps. A request that expires soon shortens the
/// wait.
final class Sweeper: Sendable {
    /// The maximum wait: 60 s. A step of the wall clock may make requests expire earlier than the last sweep found.
    static let longestPause: Duration = .seconds(60)
    /// The minimum wait: 20 ms. It prevents a busy loop if the store's clock is slower than the timer's clock.
    private static let shortestPause: Duration = .milliseconds(20)

    private struct State {
        var end: ContinuousClock.Instant?
        var timer: Task<Void, Never>?
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Lock(State())

    /// Waits for the given time, but at least ``shortestPause`` and at most ``longestPause``. Cancelling the task ends
    /// the wait.
    ///
    /// - Parameter wanted: The time to wait; `nil` for ``longestPause``.
    func pause(_ wanted: Duration?) async {
        let length = max(Self.shortestPause, min(wanted ?? Self.longestPause, Self.longestPause))
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                state.withLock { state in
                    state.waiter = continuation
                    let asked = state.end ?? .now + Self.longestPause
                    state.end = nil
                    set(min(asked, .now + length), &state)
                }
                if Task.isCancelled { fire() }
            }
        } onCancel: {
            fire()
        }
    }

    /// Shortens the current or next wait, so that it ends after `delay` at the latest.
    func shortenPause(to delay: Duration) {
        state.withLock { state in
            let end = ContinuousClock.now + max(Self.shortestPause, delay)
            guard end < state.end ?? end + .seconds(1) else { return }
            set(end, &state)
        }
    }

    private func set(_ end: ContinuousClock.Instant, _ state: inout State) {
        state.end = end
        state.timer?.cancel()
        guard state.waiter != nil else { return }
        state.timer = Task {
            guard (try? await Task.sleep(until: end, clock: .continuous)) != nil else { return }
            self.fire()
        }
    }

    private func fire() {
        let waiter = state.withLock { state in
            defer { (state.waiter, state.end) = (nil, nil) }
            state.timer?.cancel()
            return state.waiter
        }
        waiter?.resume()
    }
}
