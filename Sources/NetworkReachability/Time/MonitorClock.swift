package import NetwatchEventLoop

/// The clock and timers of a monitor, which tests can replace.
package struct MonitorClock: Sendable {
    package typealias Instant = BootInstant
    package typealias Cancellation = @Sendable () -> Void

    package var now: @Sendable () -> Instant
    /// Schedules a closure on an event loop at an instant. The returned closure cancels it.
    package var schedule: @Sendable (EventLoop, Instant, @escaping @Sendable () -> Void) -> Cancellation

    package init(
        now: @escaping @Sendable () -> Instant,
        schedule: @escaping @Sendable (EventLoop, Instant, @escaping @Sendable () -> Void) -> Cancellation
    ) {
        self.now = now
        self.schedule = schedule
    }

    /// The system's clock and timers, based on `CLOCK_BOOTTIME`.
    ///
    /// The clock continues while the machine is suspended. A timer that expires meanwhile fires on resume.
    package static let system = MonitorClock(
        now: { .now },
        schedule: { loop, moment, body in
            let timer = loop.schedule(at: moment, body)
            return { [weak loop] in loop?.cancel(timer) }
        }
    )
}
