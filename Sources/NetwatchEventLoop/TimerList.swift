/// Timers in the order they come due; equal deadlines in the order they were made.
///
/// A sorted array: a loop mostly has a handful of timers, and the next one due is looked at far more often than one
/// is added.
struct TimerList {
    fileprivate struct Entry {
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
        let index = entries.dividingIndex { $0.timer.deadline <= deadline }
        entries.insert(Entry(timer: timer, body: body), at: index)
        return timer
    }

    /// Takes a timer out and returns its closure, so that the caller releases it outside any lock.
    mutating func remove(_ timer: EventLoop.Timer) -> (@Sendable () -> Void)? {
        let index = entries.dividingIndex { ($0.timer.deadline, $0.timer.id) <= (timer.deadline, timer.id) }
        guard index < entries.endIndex, entries[index].timer.id == timer.id else { return nil }
        return entries.remove(at: index).body
    }

    /// Takes out and returns the earliest closure that is due.
    mutating func popDue(at now: ContinuousClock.Instant) -> (@Sendable () -> Void)? {
        guard let earliest, earliest <= now else { return nil }
        return entries.removeLast().body
    }
}

extension [TimerList.Entry] {
    /// The index of the first entry of the second part, in an array that a condition divides into two.
    fileprivate func dividingIndex(_ isInSecondPart: (TimerList.Entry) -> Bool) -> Int {
        var range = startIndex..<endIndex
        while !range.isEmpty {
            let middle = (range.lowerBound + range.upperBound) / 2
            range = isInSecondPart(self[middle]) ? range.lowerBound..<middle : middle + 1..<range.upperBound
        }
        return range.lowerBound
    }
}
