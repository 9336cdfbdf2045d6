package import NetwatchEventLoop

/// What a monitor knows of time: tests put their own here.
package struct MonitorClock: Sendable {
    package typealias Instant = ContinuousClock.Instant
    package typealias Cancellation = @Sendable () -> Void

    package var now: @Sendable () -> Instant
    /// Runs something on an event loop once a moment has come, unless it is called off.
    package var schedule: @Sendable (EventLoop, Instant, @escaping @Sendable () -> Void) -> Cancellation

    package init(
        now: @escaping @Sendable () -> Instant,
        schedule: @escaping @Sendable (EventLoop, Instant, @escaping @Sendable () -> Void) -> Cancellation
    ) {
        self.now = now
        self.schedule = schedule
    }

    /// `CLOCK_BOOTTIME`: time spent suspended counts, and what came due meanwhile is done on resume.
    package static let system = MonitorClock(
        now: { .now },
        schedule: { loop, moment, body in
            let timer = loop.schedule(at: moment, body)
            return { [weak loop] in loop?.cancel(timer) }
        }
    )
}
