/// Finds the connection that keeps libcurl busy without useful data, from regular samples of its thread.
///
/// The thread is busy if it uses CPU time. It uses none while it waits or while the machine is suspended. The work is
/// useless if almost no bytes of any request or response are transferred. The responsible connection is one from which
/// much was read meanwhile: a turn with thousands of handshakes is long too, but reads little from each.
struct BusyLoopDetector {
    /// The thread's work since it started.
    struct Sample {
        /// The CPU time used.
        let processorTime: Duration
        /// The number of bytes of heads and bodies that passed through our callbacks.
        let usefulBytes: UInt64
    }

    /// A connection to shut down.
    struct Finding {
        let socket: WatchedSocket
        /// The number of bytes read from it since the previous sample of the busy thread.
        let bytes: UInt64
    }

    /// The number of samples that must find the same connection, in excess of those that do not.
    static let requiredSamples = 4
    /// The minimum CPU time of a busy sample: a tenth of the interval.
    static let minimumProcessorTime = TurnWatchdog.interval / 10
    /// The minimum number of bytes read per sample: one TLS record. Smaller numbers may be an artefact, because
    /// received and unread bytes are not counted at the same moment.
    static let minimumBytes: UInt64 = 16 * 1024
    /// The number of bytes that may be read per useful byte. The smallest useful HTTP/2 frame has 9 more bytes, and the
    /// smallest chunk has 5.
    static let maximumOverhead: UInt64 = 100
    /// The maximum number of intervals in a busy sample, because the thread may share the CPU with many others. After
    /// that, earlier counts decay.
    static let maximumIntervals = 5

    /// The state that the next sample is compared with.
    private struct Baseline {
        let sample: Sample
        let totals: [WatchedSocket: UInt64]
        var intervals = 0
    }

    private var baseline: Baseline?
    /// For each suspect, the number of samples that found it, minus those that did not.
    private var counts: [WatchedSocket: Int] = [:]

    /// Evaluates the work since the last busy sample.
    ///
    /// - Parameter readTotals: Returns the number of bytes read so far from each connection. Called only if the thread
    ///   was busy or a new baseline begins.
    /// - Returns: The connection to shut down; `nil` if there is none. If there are several, the others keep the thread
    ///   busy and are found later.
    mutating func evaluate(_ now: Sample, _ readTotals: () -> [WatchedSocket: UInt64]) -> Finding? {
        guard let baseline, baseline.intervals < Self.maximumIntervals else {
            counts = counts.compactMapValues { $0 > 1 ? $0 - 1 : nil }
            self.baseline = Baseline(sample: now, totals: readTotals())
            return nil
        }
        self.baseline?.intervals += 1
        guard now.processorTime - baseline.sample.processorTime >= Self.minimumProcessorTime else {
            return nil
        }
        let totals = readTotals()
        self.baseline = Baseline(sample: now, totals: totals)
        var increases: [WatchedSocket: UInt64] = [:]
        for (socket, total) in totals {
            increases[socket] = baseline.totals[socket].map { total - min($0, total) }
        }
        let allowed = Self.maximumOverhead * (now.usefulBytes - baseline.sample.usefulBytes)
        return update(increases) { $0 >= Self.minimumBytes && $0 > allowed }
    }

    /// Updates the counts, and returns the connection that has reached the required one.
    ///
    /// - Parameter increases: The number of bytes read from each connection since the baseline.
    private mutating func update(
        _ increases: [WatchedSocket: UInt64],
        _ isUseless: (UInt64) -> Bool
    ) -> Finding? {
        counts = increases.reduce(into: [:]) { counts, entry in
            let count = self.counts[entry.key, default: 0] + (isUseless(entry.value) ? 1 : -1)
            if count > 0 { counts[entry.key] = count }
        }
        guard let worst = counts.max(by: { $0.value < $1.value }), worst.value >= Self.requiredSamples else {
            return nil
        }
        counts[worst.key] = nil
        return Finding(socket: worst.key, bytes: increases[worst.key, default: 0])
    }
}
