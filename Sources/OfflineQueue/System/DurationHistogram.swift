/// Counts of durations in classes with fixed limits, with their number and sum.
package struct DurationHistogram: Hashable, Sendable {
    /// The upper limits of the classes, in increasing order. Longer durations are only in ``count`` and ``sum``.
    package let limits: [Duration]
    /// The number of durations in each class.
    private var counts: [Int]
    /// The number of all durations.
    package private(set) var count = 0
    /// The sum of all durations.
    package private(set) var sum = Duration.zero

    /// - Parameter limits: The upper limits of the classes, in increasing order.
    package init(limits: [Duration]) {
        self.limits = limits
        counts = limits.map { _ in 0 }
    }

    package mutating func add(_ duration: Duration) {
        count += 1
        sum += duration
        if let index = limits.firstIndex(where: { duration <= $0 }) { counts[index] += 1 }
    }

    /// The number of durations that do not exceed each limit.
    package var countsUpToLimits: [Int] {
        var total = 0
        return counts.map { count in
            total += count
            return total
        }
    }
}
