/// The timers of a loop, sorted by deadline. Timers with the same deadline are sorted by creation.
///
/// The list is a sorted array, because a loop usually has few timers, and reads the next deadline far more often than
/// it inserts a timer.
struct TimerList {
    fileprivate struct Entry {
        let timer: EventLoop.Timer
        let body: @Sendable () -> Void
    }

    /// The timers by descending deadline, so that the earliest is removed from the end.
    private var entries: [Entry] = []
    private var nextID: UInt64 = 0
    private let areLimits: Bool

    /// - Parameter areLimits: Whether the timers belong to ``TimeLimits``.
    init(areLimits: Bool = false) {
        self.areLimits = areLimits
    }

    var earliest: BootInstant? {
        entries.last?.timer.deadline
    }

    mutating func insert(
        deadline: BootInstant,
        _ body: @escaping @Sendable () -> Void
    ) -> EventLoop.Timer {
        defer { nextID += 1 }
        let timer = EventLoop.Timer(id: nextID, deadline: deadline, isLimit: areLimits)
        let index = entries.partitionIndex { $0.timer.deadline <= deadline }
        entries.insert(Entry(timer: timer, body: body), at: index)
        return timer
    }

    /// Removes a timer and returns its closure, so that the caller can release it outside any lock. Returns `nil` if
    /// the timer has fired or was cancelled.
    mutating func remove(_ timer: EventLoop.Timer) -> (@Sendable () -> Void)? {
        let index = entries.partitionIndex { ($0.timer.deadline, $0.timer.id) <= (timer.deadline, timer.id) }
        guard index < entries.endIndex, entries[index].timer.id == timer.id else { return nil }
        return entries.remove(at: index).body
    }

    /// Removes the earliest timer if it is due, and returns its closure. Returns `nil` if no timer is due.
    mutating func popDue(at now: BootInstant) -> (@Sendable () -> Void)? {
        guard let earliest, earliest <= now else { return nil }
        return entries.removeLast().body
    }
}

extension [TimerList.Entry] {
    /// Returns the first index at which the condition is true. From that index on, the condition must be true for all
    /// elements.
    fileprivate func partitionIndex(_ isInSecondPart: (TimerList.Entry) -> Bool) -> Int {
        var range = startIndex..<endIndex
        while !range.isEmpty {
            let middle = (range.lowerBound + range.upperBound) / 2
            range = isInSecondPart(self[middle]) ? range.lowerBound..<middle : middle + 1..<range.upperBound
        }
        return range.lowerBound
    }
}
