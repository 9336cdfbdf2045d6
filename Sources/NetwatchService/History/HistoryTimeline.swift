/// A part of the history up to now, and how it is divided.
package enum HistoryWindow: String, Hashable, Sendable, CaseIterable {
    case day = "24h"
    case week = "7d"
    case month = "30d"
    case year = "365d"

    /// The length of the window in seconds.
    package var seconds: Int64 {
        switch self {
        case .day: 86_400
        case .week: 7 * 86_400
        case .month: 30 * 86_400
        case .year: 365 * 86_400
        }
    }

    /// The length of a step in seconds: 15 min, 2 h, 8 h or 4 days. A window has 84 to 96 steps.
    package var step: Int64 {
        switch self {
        case .day: 900
        case .week: 7200
        case .month: 8 * 3600
        case .year: 4 * 86_400
        }
    }

    /// The tier with the shortest buckets that are kept for the whole window.
    var tier: HistoryTier {
        switch self {
        case .day: .minute
        case .week, .month: .hour
        case .year: .day
        }
    }
}

/// The history of a host in equal steps, the last of which contains the current time.
package struct HistoryTimeline: Hashable, Sendable {
    /// The start of the first step, in seconds since 1970.
    package let start: Int64
    /// The length of a step in seconds.
    package let step: Int64
    package let steps: [HistoryBucket]

    init(_ window: HistoryWindow, _ buckets: [Int64: HistoryBucket], now: Int64) {
        let step = window.step
        let count = Int((window.seconds + step - 1) / step)
        let start = now - now % step - Int64(count - 1) * step
        var steps = [HistoryBucket](repeating: HistoryBucket(), count: count)
        for (time, bucket) in buckets where time >= start && (time - start) / step < count {
            steps[Int((time - start) / step)].add(bucket)
        }
        (self.start, self.step, self.steps) = (start, step, steps)
    }

    /// The sum of all steps.
    package var total: HistoryBucket {
        steps.reduce(into: HistoryBucket()) { $0.add($1) }
    }
}
