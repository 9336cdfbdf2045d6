/// The timers and time limits of a loop. A value without a clock.
struct LoopTimers {
    private var timers = TimerList()
    private var limits = TimeLimits()

    /// The time at which the loop must look at its timers and limits next; `nil` if there are none.
    var earliest: BootInstant? {
        isLimitFirst ? limits.earliest : timers.earliest
    }

    private var isLimitFirst: Bool {
        guard let limit = limits.earliest else { return false }
        return timers.earliest.map { limit < $0 } ?? true
    }

    mutating func insert(
        deadline: BootInstant,
        _ body: @escaping @Sendable () -> Void
    ) -> EventLoop.Timer {
        timers.insert(deadline: deadline, body)
    }

    mutating func insertLimit(
        deadline: BootInstant,
        _ body: @escaping @Sendable () -> Void
    ) -> EventLoop.Timer {
        limits.insert(deadline: deadline, body)
    }

    /// Removes a timer or limit and returns its closure; see ``TimerList/remove(_:)``.
    mutating func remove(_ timer: EventLoop.Timer) -> (@Sendable () -> Void)? {
        timer.isLimit ? limits.remove(timer) : timers.remove(timer)
    }

    /// Removes the timer or limit with the earliest deadline if it is due, and returns its closure. Returns `nil` if
    /// none is due.
    ///
    /// The order matters if the loop is late: a limit may end what a later timer would continue.
    mutating func popDue(at now: BootInstant) -> (@Sendable () -> Void)? {
        // If this call postpones the limits, a timer may be due before them.
        if isLimitFirst, let body = limits.popDue(at: now) { return body }
        return timers.popDue(at: now) ?? limits.popDue(at: now)
    }
}
