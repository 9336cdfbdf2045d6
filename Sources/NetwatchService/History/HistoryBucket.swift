internal import Glibc

/// How long the buckets of the history are, and for how long they are kept.
package enum HistoryTier: Int, Hashable, Sendable, CaseIterable {
    case minute, hour, day

    /// The length of a bucket in seconds.
    package var seconds: Int64 {
        switch self {
        case .minute: 60
        case .hour: 3600
        case .day: 86_400
        }
    }

    /// How long a bucket is kept, in seconds: minutes for 24 hours, hours for 30 days. `nil` for days: the history's
    /// retention applies.
    package var retention: Int64? {
        switch self {
        case .minute: 86_400
        case .hour: 30 * 86_400
        case .day: nil
        }
    }

    /// Returns the start of the bucket that contains a time; both in seconds since 1970.
    package func start(of time: Int64) -> Int64 { time - (time % seconds + seconds) % seconds }
}

/// What is known about a host in a minute, an hour or a day (UTC). The rest of the time is unknown.
package struct HistoryBucket: Hashable, Sendable {
    /// Milliseconds in which the host was up.
    package var up: Int64 = 0
    /// Milliseconds in which the host was down although there was a path to it.
    package var remote: Int64 = 0
    /// Milliseconds in which this machine had no path to the host.
    package var local: Int64 = 0
    /// The number of probes.
    package var probes = 0
    /// The number of failed probes.
    package var failures = 0
    /// The latencies of the successful probes.
    package var latencies = LatencyHistogram()

    package init() {}

    package mutating func add(_ other: HistoryBucket) {
        up += other.up
        remote += other.remote
        local += other.local
        probes += other.probes
        failures += other.failures
        latencies.add(other.latencies)
    }

    mutating func add(_ milliseconds: Int64, in state: HostState) {
        switch state {
        case .unknown: break
        case .up: up += milliseconds
        case .down(.remote): remote += milliseconds
        case .down(.local): local += milliseconds
        }
    }

    /// The part of the time with a path in which the host was up, from 0 to 1; `nil` if there was no such time.
    package var uptime: Double? {
        up + remote > 0 ? Double(up) / Double(up + remote) : nil
    }
}

/// Changes that have not been written to the history yet.
package struct HistoryBatch: Sendable {
    struct Key: Hashable, Sendable {
        let host: String
        let tier: HistoryTier
        let start: Int64
    }

    /// A change of the outages.
    enum OutageEvent: Hashable, Sendable {
        case began(host: String, OutageCause, at: HostTracker.Start, reason: String?)
        case ended(host: String, at: HostTracker.Start)
        /// The host is up, whatever its state was before.
        case up(host: String)
        /// Only these hosts are watched from now on.
        case watched(hosts: Set<String>)
    }

    private(set) var buckets: [Key: HistoryBucket] = [:]
    private(set) var outages: [OutageEvent] = []

    package init() {}

    package var isEmpty: Bool { buckets.isEmpty && outages.isEmpty }

    package mutating func add(_ span: HostTracker.Span, of host: String) {
        guard span.state != .unknown else { return }
        for tier in HistoryTier.allCases {
            var begin = span.start
            while begin < span.end {
                let start = tier.start(of: Int64((Double(begin) / 1000).rounded(.down)))
                let end = min(span.end, (start + tier.seconds) * 1000)
                buckets[Key(host: host, tier: tier, start: start), default: HistoryBucket()]
                    .add(end - begin, in: span.state)
                begin = end
            }
        }
    }

    /// Adds a probe that ended at a time in milliseconds since 1970.
    package mutating func addProbe(of host: String, at time: Int64, latency: Duration?, isSuccess: Bool) {
        for tier in HistoryTier.allCases {
            let key = Key(host: host, tier: tier, start: tier.start(of: time / 1000))
            buckets[key, default: HistoryBucket()].probes += 1
            if !isSuccess { buckets[key]?.failures += 1 }
            if isSuccess, let latency { buckets[key]?.latencies.add(latency) }
        }
    }

    package mutating func add(_ change: HostTracker.Change, of host: String) {
        if case .down = change.old { outages.append(.ended(host: host, at: change.since)) }
        if case .down(let cause) = change.new {
            outages.append(.began(host: host, cause, at: change.since, reason: change.reason))
        }
        if change.new == .up { outages.append(.up(host: host)) }
    }

    /// Ends the outage of a host that is not watched any more.
    package mutating func endOutage(of host: String, at time: HostTracker.Start) {
        outages.append(.ended(host: host, at: time))
    }

    /// Records that only these hosts are watched from now on. Hooks will not report the end of the outages of others.
    package mutating func addWatched(_ hosts: Set<String>) {
        outages.append(.watched(hosts: hosts))
    }

    /// Adds the changes of a later batch.
    package mutating func add(_ later: HistoryBatch) {
        for (key, bucket) in later.buckets { buckets[key, default: HistoryBucket()].add(bucket) }
        outages += later.outages
    }

    /// Removes the oldest buckets and outages, so that a history that cannot be written takes a bounded amount of
    /// memory.
    ///
    /// Buckets of minutes are removed first, then those of hours, then those of days. In the tier of a removed bucket,
    /// the state of the host is unknown in that time. Of the outages, only those are removed that have begun and ended
    /// in this batch.
    ///
    /// - Parameter most: The maximum number of buckets, and the number of changes of outages above which outages are
    ///   removed.
    mutating func shrink(to most: Int) {
        for tier in HistoryTier.allCases where buckets.count > most {
            let oldest = buckets.keys.filter { $0.tier == tier }.sorted { $0.start < $1.start }
            for key in oldest.prefix(buckets.count - most) { buckets[key] = nil }
        }
        if outages.count > most { removeOutages(atLeast: outages.count - most) }
    }

    /// Removes the oldest outages that have begun and ended in this batch, and the changes that have no effect without
    /// them. The remaining changes have the same effect on all other outages.
    ///
    /// - Parameter count: The number of changes after which no further outage is removed.
    private mutating func removeOutages(atLeast count: Int) {
        var removed: Set<Int> = []
        var begun: [String: Int] = [:]
        var up: Set<String> = []
        var watched: Set<String>?
        for (index, event) in outages.enumerated() where removed.count < count {
            switch event {
            case .began(let host, _, _, _): begun[host] = index
            case .ended(let host, _):
                if let start = begun.removeValue(forKey: host) { removed.formUnion([start, index]) }
            case .up(let host):
                if !up.insert(host).inserted { removed.insert(index) }
            case .watched(let hosts):
                if hosts == watched { removed.insert(index) }
                watched = hosts
            }
        }
        outages = outages.enumerated().filter { !removed.contains($0.offset) }.map(\.element)
    }
}

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
