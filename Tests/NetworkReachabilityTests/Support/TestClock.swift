internal import NetwatchEventLoop
internal import NetworkReachability

/// A clock with timers that stands still until the test advances it.
final class TestClock: Sendable {
    private struct Timer {
        let id: Int
        let due: BootInstant
        let loop: EventLoop
        let body: @Sendable () -> Void
    }

    private struct State {
        var now = BootInstant.now
        var timers: [Timer] = []
        var nextID = 0
    }

    private let state = Lock(State())

    /// This clock and its timers, for the configuration of a monitor.
    var monitorClock: MonitorClock {
        MonitorClock(
            now: { self.state.withLock { $0.now } },
            schedule: { loop, due, body in
                let id = self.insert(loop, due, body)
                return { self.state.withLock { $0.timers.removeAll { $0.id == id } } }
            }
        )
    }

    private func insert(
        _ loop: EventLoop,
        _ due: BootInstant,
        _ body: @escaping @Sendable () -> Void
    ) -> Int {
        state.withLock { state in
            state.nextID += 1
            state.timers.append(Timer(id: state.nextID, due: due, loop: loop, body: body))
            return state.nextID
        }
    }

    /// Advances the time. Runs the timers that become due, in the order of their times, each on its loop.
    func advance(by duration: Duration) {
        let end = state.withLock { $0.now + duration }
        while let timer = takeNext(until: end) { timer.loop.runAndWait(timer.body) }
        state.withLock { $0.now = end }
    }

    private func takeNext(until end: BootInstant) -> Timer? {
        state.withLock { state in
            let next = state.timers.filter { $0.due <= end }.min { $0.due < $1.due }
            guard let next else { return nil }
            state.timers.removeAll { $0.id == next.id }
            state.now = max(state.now, next.due)
            return next
        }
    }
}
