/// The pace of background work that reads much from the disk.
///
/// The work rests after each read, so that it takes at most a tenth of the disk's time, or a fifth while a read takes more
/// than 7 s, and a commit waits for one read at most.
package struct DiskPace: Hashable, Sendable {
    /// The rest as a multiple of the duration of the read before it: 9.
    package var factor = 9
    /// The minimum rest: 50 ms. It limits the processor time for reads from the kernel's cache.
    package var shortest: Duration = .milliseconds(50)
    /// The maximum rest: 60 s. A read that a suspension of the machine interrupts seems to take hours.
    package var longest: Duration = .seconds(60)

    package init() {}

    /// Returns how long to rest after a read.
    func rest(after read: Duration) -> Duration {
        max(shortest, min(read * factor, longest))
    }

    /// Rests after a read that began at `start` and has ended now.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    func rest(since start: ContinuousClock.Instant) async throws {
        try await Task.sleep(for: rest(after: ContinuousClock.now - start), clock: .continuous)
    }
}

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
