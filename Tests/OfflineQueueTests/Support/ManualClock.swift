internal import NetwatchEventLoop
internal import NetwatchTestSupport

/// A clock that stands still until the test advances it.
final class ManualClock: Clock {
    struct Instant: InstantProtocol {
        let sinceStart: Duration

        func advanced(by duration: Duration) -> Instant { Instant(sinceStart: sinceStart + duration) }
        func duration(to other: Instant) -> Duration { other.sinceStart - sinceStart }
        static func < (left: Instant, right: Instant) -> Bool { left.sinceStart < right.sinceStart }
    }

    private struct Sleeper {
        let due: Instant
        let wake: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var now = Instant(sinceStart: .zero)
        var sleepers: [Int: Sleeper] = [:]
        var cancelled: Set<Int> = []
        var nextID = 0
    }

    /// The deadline of each sleep, recorded when the sleep starts.
    let sleeps = Recorder<Duration>()
    private let state = Lock(State())
    /// All clocks. A test may end before its sleeping tasks: these and their clock refer only to each other, and the leak
    /// checker would report them.
    private static let all = Lock<[ManualClock]>([])

    init() { Self.all.withLock { $0.append(self) } }

    var now: Instant { state.withLock { $0.now } }
    var minimumResolution: Duration { .nanoseconds(1) }

    func advance(by duration: Duration) {
        let due = state.withLock { state in
            state.now = state.now.advanced(by: duration)
            let due = state.sleepers.filter { $0.value.due <= state.now }
            for id in due.keys { state.sleepers[id] = nil }
            return due.values.map(\.wake)
        }
        for wake in due { wake.resume() }
    }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { wake in
                let result = begin(id, Sleeper(due: deadline, wake: wake))
                sleeps.record(deadline.sinceStart)
                if let result { wake.resume(with: result) }
            }
        } onCancel: {
            let sleeper = state.withLock { state in
                state.cancelled.insert(id)
                return state.sleepers.removeValue(forKey: id)
            }
            sleeper?.wake.resume(throwing: CancellationError())
        }
    }

    /// Registers a sleeping task. Returns the result instead if the deadline has passed or the task was cancelled.
    private func begin(_ id: Int, _ sleeper: Sleeper) -> Result<Void, any Error>? {
        state.withLock { state in
            if state.cancelled.contains(id) { return .failure(CancellationError()) }
            if sleeper.due <= state.now { return .success(()) }
            state.sleepers[id] = sleeper
            return nil
        }
    }
}
