package import NetwatchEventLoop

/// Combines a burst of changes into one report. A pure value, without clock or timer.
struct Debounce: Sendable {
    /// The time without a change after which the report is due.
    let quietPeriod: Duration
    /// The maximum time from the first change to its report, however many changes follow.
    let maxDelay: Duration

    private var first: BootInstant?
    private var last: BootInstant?

    init(quietPeriod: Duration, maxDelay: Duration) {
        self.quietPeriod = quietPeriod
        self.maxDelay = maxDelay
    }

    /// The time when the report is due; `nil` if nothing has changed.
    var due: BootInstant? {
        guard let first, let last else { return nil }
        return min(last + quietPeriod, first + maxDelay)
    }

    mutating func note(at now: BootInstant) {
        first = first ?? now
        last = now
    }

    /// Returns whether the report is due, and resets the state if it is.
    mutating func takeDue(at now: BootInstant) -> Bool {
        guard let due, due <= now else { return false }
        (first, last) = (nil, nil)
        return true
    }
}

extension Duration {
    /// Returns this duration with a random variation, rounded to milliseconds.
    ///
    /// - Parameters:
    ///   - part: The maximum variation as a part of this duration. With 0.1 the result is 90 to 110 percent.
    ///   - random: A random number from 0 (shortest result) to 1 (longest). With 0.5 the duration does not vary.
    func jittered(by part: Double, _ random: Double) -> Duration {
        .milliseconds((self / .milliseconds(1) * (1 + part * (2 * random - 1))).rounded())
    }

    /// Returns this duration, or the nearest bound if it is outside the range.
    package func clamped(to range: ClosedRange<Duration>) -> Duration {
        min(max(self, range.lowerBound), range.upperBound)
    }
}

/// Returns the earlier of two instants; `nil` if both are `nil`.
///
/// It runs for every kernel notification, so it does not allocate an array.
func earliest(_ first: BootInstant?, _ second: BootInstant?) -> BootInstant? {
    guard let first, let second else { return first ?? second }
    return min(first, second)
}

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
