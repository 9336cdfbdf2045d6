internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchEventLoop

/// The order of timers and time limits, with simulated time.
@Suite struct LoopTimersTests {
    private let start = BootInstant.now
    private let fired = Recorder<String>()

    /// Returns timers at 10 ms and 30 ms after the start, and a limit at 20 ms.
    private func timers() -> LoopTimers {
        var timers = LoopTimers()
        for time in [30, 10] {
            _ = timers.insert(deadline: start + .milliseconds(time)) { [fired] in
                fired.record("timer \(time)")
            }
        }
        _ = timers.insertLimit(deadline: start + .milliseconds(20)) { [fired] in fired.record("limit") }
        return timers
    }

    /// Calls what is due at a time after the start.
    private func fire(_ timers: inout LoopTimers, at time: Duration) {
        while let body = timers.popDue(at: start + time) { body() }
    }

    @Test func `a late loop fires timers and limits in the order of their deadlines`() {
        var timers = timers()
        fire(&timers, at: .milliseconds(40))
        #expect(fired.values == ["timer 10", "limit", "timer 30"])
        #expect(timers.earliest == nil)
    }

    @Test func `the earliest deadline is that of a timer or of a limit`() {
        var timers = timers()
        #expect(timers.earliest == start + .milliseconds(10))
        fire(&timers, at: .milliseconds(10))
        #expect(timers.earliest == start + .milliseconds(20))
    }

    @Test func `timers are not postponed with the limits`() {
        var timers = timers()
        let late = TimeLimits.tolerance + .milliseconds(21)
        fire(&timers, at: late)
        #expect(fired.values == ["timer 10", "timer 30"])
        fire(&timers, at: late * 2)
        #expect(fired.values.last == "limit")
    }
}
