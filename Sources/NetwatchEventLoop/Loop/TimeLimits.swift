/// The time limits of a loop, sorted by deadline. A value without a clock.
///
/// A limit is not judged immediately after a time in which the loop's thread did not run: the process was stopped, its
/// control group was frozen, or the machine stood still. What the limit waits for may have arrived meanwhile, and no
/// one has read it. So the limits that passed in this time are postponed, once.
package struct TimeLimits {
    /// The lateness from which the loop counts as not having run: 100 ms. A thread that is ready to run waits less for
    /// a processor, unless the machine is overloaded.
    static let tolerance = Duration.milliseconds(100)
    /// The maximum time by which limits are postponed: 1 s. It suffices for a few round trips, such as the rest of a
    /// TLS handshake. After a long suspension, the connections are usually dead, so a longer time would only be lost.
    static let maximumGrace = Duration.seconds(1)

    private var timers = TimerList(areLimits: true)
    /// The end of the last postponement; `nil` before the first.
    private var graceEnd: BootInstant?

    /// The time at which a limit may be due next; `nil` if there are no limits.
    var earliest: BootInstant? {
        timers.earliest.map { max($0, graceEnd ?? $0) }
    }

    mutating func insert(
        deadline: BootInstant,
        _ body: @escaping @Sendable () -> Void
    ) -> EventLoop.Timer {
        timers.insert(deadline: deadline, body)
    }

    /// Removes a limit and returns its closure; see ``TimerList/remove(_:)``.
    mutating func remove(_ timer: EventLoop.Timer) -> (@Sendable () -> Void)? {
        timers.remove(timer)
    }

    /// Removes the earliest limit if it is due, and returns its closure. Returns `nil` if no limit is due, or if this
    /// call has postponed the limits because the loop did not run when the earliest one passed.
    mutating func popDue(at now: BootInstant) -> (@Sendable () -> Void)? {
        guard let earliest, earliest <= now, let deadline = timers.earliest else { return nil }
        // Limits that were postponed before are judged in any case. Otherwise an overloaded loop would never judge
        // them.
        let wasPostponed = graceEnd.map { deadline <= $0 } ?? false
        guard !wasPostponed, let grace = Self.grace(after: now - deadline) else {
            return timers.popDue(at: now)
        }
        graceEnd = now + grace
        return nil
    }

    /// Returns the time by which a limit must be postponed that is judged this late; `nil` if it can be judged now.
    package static func grace(after lateness: Duration) -> Duration? {
        lateness > tolerance ? min(lateness, maximumGrace) : nil
    }
}
