/// Finds the connection that keeps libcurl busy without useful data, from regular samples of its thread.
///
/// The thread is busy if it uses CPU time. It uses none while it waits or while the machine is suspended. The work is
/// useless if almost no bytes of any request or response are transferred. The responsible connection is one from which
/// much was read meanwhile: a turn with thousands of handshakes is long too, but reads little from each.
struct VainWork {
    /// The thread's work since it started.
    struct Account {
        /// The CPU time used.
        let processorTime: Duration
        /// The number of bytes of heads and bodies that passed through our callbacks.
        let usefulBytes: UInt64
    }

    /// A connection to shut down.
    struct Verdict {
        let socket: WatchedSocket
        /// The number of bytes read from it since the previous sample of the busy thread.
        let bytes: UInt64
    }

    /// The number of samples that must find the same connection, in excess of those that do not.
    static let patience = 4
    /// The least CPU time of a busy sample: a tenth of the interval.
    static let leastProcessorTime = TurnWatchdog.interval / 10
    /// The least number of bytes read per sample: one TLS record. Smaller numbers may be an artefact, because received
    /// and unread bytes are not counted at the same moment.
    static let leastBytes: UInt64 = 16 * 1024
    /// The number of bytes that may be read per useful byte. The smallest useful HTTP/2 frame has 9 more bytes, and the
    /// smallest chunk has 5.
    static let wastePerByte: UInt64 = 100

    /// The maximum number of intervals in a busy sample, because the thread may share the CPU with many others. After
    /// that, earlier findings decay.
    static let longestSpan = 5

    /// The state that the next sample is compared with.
    private struct Baseline {
        let account: Account
        let read: [WatchedSocket: UInt64]
        var looks = 0
    }

    private var baseline: Baseline?
    private var findings: [WatchedSocket: Int] = [:]

    /// Evaluates the work since the last busy sample.
    ///
    /// - Parameter read: Returns the number of bytes read so far from each connection. Called only if the thread was
    ///   busy or a new baseline begins.
    /// - Returns: The connection to shut down; `nil` if there is none. If there are several, the others keep the thread
    ///   busy and are found later.
    mutating func judge(_ now: Account, _ read: () -> [WatchedSocket: UInt64]) -> Verdict? {
        guard let baseline, baseline.looks < Self.longestSpan else {
            findings = findings.compactMapValues { $0 > 1 ? $0 - 1 : nil }
            self.baseline = Baseline(account: now, read: read())
            return nil
        }
        self.baseline?.looks += 1
        guard now.processorTime - baseline.account.processorTime >= Self.leastProcessorTime else {
            return nil
        }
        let read = read()
        self.baseline = Baseline(account: now, read: read)
        let waste = Self.wastePerByte * (now.usefulBytes - baseline.account.usefulBytes)
        var news: [WatchedSocket: UInt64] = [:]
        for (socket, count) in read { news[socket] = baseline.read[socket].map { count - min($0, count) } }
        return count(news) { $0 >= Self.leastBytes && $0 > waste }
    }

    /// - Parameter news: The number of bytes read from each connection since the baseline.
    private mutating func count(_ news: [WatchedSocket: UInt64], _ isVain: (UInt64) -> Bool) -> Verdict? {
        findings = news.reduce(into: [:]) { findings, entry in
            let count = self.findings[entry.key, default: 0] + (isVain(entry.value) ? 1 : -1)
            if count > 0 { findings[entry.key] = count }
        }
        guard let worst = findings.max(by: { $0.value < $1.value }), worst.value >= Self.patience else {
            return nil
        }
        findings[worst.key] = nil
        return Verdict(socket: worst.key, bytes: news[worst.key, default: 0])
    }
}
