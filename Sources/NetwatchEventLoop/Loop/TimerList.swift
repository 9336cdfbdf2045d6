/// Timers sorted by deadline, and by creation for equal deadlines.
///
/// A sorted array, because a loop usually has only a few timers, and reads of the next deadline are far more frequent
/// than insertions.
struct TimerList {
    fileprivate struct Entry {
        let timer: EventLoop.Timer
        let body: @Sendable () -> Void
    }

    /// Sorted by descending deadline, so that the earliest is removed from the end.
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
        let index = entries.partitionIndex { $0.timer.deadline <= deadline }
        entries.insert(Entry(timer: timer, body: body), at: index)
        return timer
    }

    /// Removes a timer and returns its closure, so that the caller can release it outside any lock.
    mutating func remove(_ timer: EventLoop.Timer) -> (@Sendable () -> Void)? {
        let index = entries.partitionIndex { ($0.timer.deadline, $0.timer.id) <= (timer.deadline, timer.id) }
        guard index < entries.endIndex, entries[index].timer.id == timer.id else { return nil }
        return entries.remove(at: index).body
    }

    /// Removes and returns the earliest closure if it is due.
    mutating func popDue(at now: ContinuousClock.Instant) -> (@Sendable () -> Void)? {
        guard let earliest, earliest <= now else { return nil }
        return entries.removeLast().body
    }
}

extension [TimerList.Entry] {
    /// Returns the first index at which the condition is true. Once true, the condition must stay true to the end.
    fileprivate func partitionIndex(_ isInSecondPart: (TimerList.Entry) -> Bool) -> Int {
        var range = startIndex..<endIndex
        while !range.isEmpty {
            let middle = (range.lowerBound + range.upperBound) / 2
            range = isInSecondPart(self[middle]) ? range.lowerBound..<middle : middle + 1..<range.upperBound
        }
        return range.lowerBound
    }
}
