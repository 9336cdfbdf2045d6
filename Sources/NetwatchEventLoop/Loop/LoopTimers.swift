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

/// The closures of timers by their deadlines. Timers with the same deadline are sorted by creation.
struct TimerList {
    private var deadlines = Timetable<UInt64, BootInstant>()
    private var bodies: [UInt64: @Sendable () -> Void] = [:]
    private var nextID: UInt64 = 0
    private let areLimits: Bool

    /// - Parameter areLimits: Whether the timers belong to ``TimeLimits``.
    init(areLimits: Bool = false) {
        self.areLimits = areLimits
    }

    var earliest: BootInstant? { deadlines.first }

    mutating func insert(
        deadline: BootInstant,
        _ body: @escaping @Sendable () -> Void
    ) -> EventLoop.Timer {
        defer { nextID += 1 }
        deadlines.set(nextID, to: deadline)
        bodies[nextID] = body
        return EventLoop.Timer(id: nextID, deadline: deadline, isLimit: areLimits)
    }

    /// Removes a timer and returns its closure, so that the caller can release it outside any lock. Returns `nil` if
    /// the timer has fired or was cancelled.
    mutating func remove(_ timer: EventLoop.Timer) -> (@Sendable () -> Void)? {
        deadlines.set(timer.id, to: nil)
        return bodies.removeValue(forKey: timer.id)
    }

    /// Removes the earliest timer if it is due, and returns its closure. Returns `nil` if no timer is due.
    mutating func popDue(at now: BootInstant) -> (@Sendable () -> Void)? {
        deadlines.removeFirst(until: now).flatMap { bodies.removeValue(forKey: $0) }
    }
}

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
