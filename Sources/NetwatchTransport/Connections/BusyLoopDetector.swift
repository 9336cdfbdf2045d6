/// A detector of connections that keep libcurl busy without useful data. It decides from regular samples of the
/// engine's thread.
///
/// A connection is suspected if three conditions hold:
///
/// - The thread is busy: it uses CPU time. It uses none while it waits or while the machine is suspended.
/// - The work is useless: almost no bytes of any request or response are transferred.
/// - Much was read from this connection meanwhile. This condition excludes other work that keeps the thread busy: for
///   example, thousands of handshakes read little from each connection.
struct BusyLoopDetector {
    /// The work of the thread since its start.
    struct Sample {
        /// The CPU time that the thread has used.
        let processorTime: Duration
        /// The number of bytes of heads and bodies that have passed through our callbacks.
        let usefulBytes: UInt64
    }

    /// A connection to shut down.
    struct Finding {
        let socket: WatchedSocket
        /// The number of bytes read from the connection since the previous busy sample.
        let bytes: UInt64
    }

    /// The count at which a connection is shut down. Each busy sample adds 1 to the count of each connection that it
    /// suspects, and subtracts 1 from all other counts.
    static let requiredSamples = 4
    /// The minimum CPU time since the baseline that makes a sample busy: a tenth of the interval between samples.
    static let minimumProcessorTime = TurnWatchdog.interval / 10
    /// The minimum number of bytes read from a connection since the baseline that makes it a suspect: the size of one
    /// TLS record. Smaller numbers may be wrong, because the received and the unread bytes are not counted at the same
    /// moment.
    static let minimumBytes: UInt64 = 16 * 1024
    /// The maximum number of bytes read per useful byte. Legitimate overhead is far lower: a single byte of data takes
    /// 9 more bytes as an HTTP/2 frame, and 5 more as an HTTP/1.1 chunk.
    static let maximumOverhead: UInt64 = 100
    /// The number of intervals after which a baseline expires. Until then, the CPU time adds up over several intervals,
    /// because the thread may share the CPU with many others. When the baseline expires, all counts decrease by 1, and
    /// the current sample becomes the new baseline.
    static let maximumIntervals = 5

    /// The state with which the next sample is compared.
    private struct Baseline {
        let sample: Sample
        let totals: [WatchedSocket: UInt64]
        var intervals = 0
    }

    private var baseline: Baseline?
    /// For each suspect, the number of samples that suspected it, minus the number of samples that did not.
    private var counts: [WatchedSocket: Int] = [:]

    /// Evaluates the work of the thread since the baseline. The baseline is the last busy sample, or the sample at
    /// which an earlier baseline expired.
    ///
    /// - Parameters:
    ///   - now: The current sample.
    ///   - readTotals: Returns the number of bytes read so far from each connection. Called only if the thread was busy
    ///     or a new baseline begins.
    /// - Returns: The connection to shut down; `nil` if there is none. If there are several, later samples find the
    ///   others, because these keep the thread busy.
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

    /// Updates the counts, and returns the connection whose count has reached ``requiredSamples``.
    ///
    /// - Parameters:
    ///   - increases: The number of bytes read from each connection since the baseline.
    ///   - isUseless: Returns whether this number of bytes makes a connection a suspect.
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
