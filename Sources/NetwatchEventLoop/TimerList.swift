/// Timers in the order they come due; equal deadlines in the order they were made.
///
/// A sorted array: a loop has a handful of timers, and the next one due is looked at far more often than
/// one is added.
struct TimerList {
    private struct Entry {
        let timer: EventLoop.Timer
        let body: @Sendable () -> Void
    }

    /// Latest first, so that the earliest is taken off the end.
    private var entries: [Entry] = []
    private var nextID: UInt64 = 0

    var earliest: ContinuousClock.Instant? {
        entries.last?.timer.deadline
    }

    mutating func insert(
        deadline: ContinuousClock.Instant,
        _ body: @escaping @Sendable () -> Void
    ) -> EventLoop.Timer {
        defer { nextID += 1 }
        let timer = EventLoop.Timer(id: nextID, deadline: deadline)
        let index = entries.firstIndex { $0.timer.deadline <= deadline } ?? entries.endIndex
        entries.insert(Entry(timer: timer, body: body), at: index)
        return timer
    }

    /// Takes a timer out and returns its closure, so that the caller releases it outside any lock.
    mutating func remove(_ timer: EventLoop.Timer) -> (@Sendable () -> Void)? {
        guard let index = entries.firstIndex(where: { $0.timer.id == timer.id }) else { return nil }
        return entries.remove(at: index).body
    }

    /// Takes out and returns the earliest closure that is due.
    mutating func popDue(at now: ContinuousClock.Instant) -> (@Sendable () -> Void)? {
        guard let earliest, earliest <= now else { return nil }
        return entries.removeLast().body
    }
}
