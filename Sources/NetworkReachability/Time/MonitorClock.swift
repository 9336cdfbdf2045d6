package import NetwatchEventLoop

/// The clock and timers of a monitor, which tests can replace.
package struct MonitorClock: Sendable {
    package typealias Instant = ContinuousClock.Instant
    package typealias Cancellation = @Sendable () -> Void

    package var now: @Sendable () -> Instant
    /// Runs a closure on an event loop at an instant, unless it is cancelled.
    package var schedule: @Sendable (EventLoop, Instant, @escaping @Sendable () -> Void) -> Cancellation

    package init(
        now: @escaping @Sendable () -> Instant,
        schedule: @escaping @Sendable (EventLoop, Instant, @escaping @Sendable () -> Void) -> Cancellation
    ) {
        self.now = now
        self.schedule = schedule
    }

    /// Based on `CLOCK_BOOTTIME`: suspended time counts, and timers that expired during a suspension fire on resume.
    package static let system = MonitorClock(
        now: { .now },
        schedule: { loop, moment, body in
            let timer = loop.schedule(at: moment, body)
            return { [weak loop] in loop?.cancel(timer) }
        }
    )
}
