internal import Glibc

/// Counts of latencies in classes whose limits grow by 15 %: from 0.1 ms to a minute. So a quantile is at most 15 %
/// too large, and histograms of different times can be added.
package struct LatencyHistogram: Hashable, Sendable {
    private static let smallest = 100.0
    private static let growth = 1.15
    private static let classes = 97

    private var counts: [Int: Int] = [:]

    package init() {}

    package mutating func add(_ latency: Duration) {
        let microseconds = latency / .microseconds(1)
        let exponent =
            microseconds <= Self.smallest ? 0 : log(microseconds / Self.smallest) / log(Self.growth)
        counts[min(Int(exponent.rounded(.up)), Self.classes - 1), default: 0] += 1
    }

    package mutating func add(_ other: LatencyHistogram) {
        counts.merge(other.counts, uniquingKeysWith: +)
    }

    /// Returns the latency that a part of the probes did not exceed, rounded up to the limit of its class; `nil` if
    /// there are no latencies.
    ///
    /// - Parameter part: From 0 to 1; 0.5 for the median.
    package func quantile(_ part: Double) -> Duration? {
        let total = counts.values.reduce(0, +)
        guard total > 0 else { return nil }
        let rank = max(1, Int((part * Double(total)).rounded(.up)))
        var seen = 0
        for (index, count) in counts.sorted(by: { $0.key < $1.key }) {
            seen += count
            if seen >= rank { return .microseconds(Int64(Self.smallest * pow(Self.growth, Double(index)))) }
        }
        return nil
    }
}

// MARK: - Storage

extension LatencyHistogram {
    /// The histogram as text: `class:count` pairs, separated by commas.
    var stored: String {
        counts.sorted { $0.key < $1.key }.map { "\($0.key):\($0.value)" }.joined(separator: ",")
    }

    /// Reads ``stored``. Pairs that are not valid are ignored, because a histogram only describes the past.
    init(stored: String) {
        for pair in stored.split(separator: ",") {
            let numbers = pair.split(separator: ":").compactMap { Int($0) }
            guard numbers.count == 2, (0..<Self.classes).contains(numbers[0]), numbers[1] > 0 else {
                continue
            }
            counts[numbers[0]] = numbers[1]
        }
    }
}
