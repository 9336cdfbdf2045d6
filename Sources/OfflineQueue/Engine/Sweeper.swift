internal import Synchronization

/// The pause between two sweeps. A request with a short time to live shortens it.
final class Sweeper: Sendable {
    /// The maximum pause. Expiry is not urgent, but a step of the wall clock may make requests due early.
    static let longestPause: Duration = .seconds(60)
    /// The minimum pause, so that a slow clock does not cause a busy loop.
    private static let shortestPause: Duration = .milliseconds(20)

    private struct State {
        var end: ContinuousClock.Instant?
        var timer: Task<Void, Never>?
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    /// Waits for the given time, between ``shortestPause`` and ``longestPause``, or until the task is cancelled.
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

    /// Ends the pause after the given delay, because a request expires then.
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
