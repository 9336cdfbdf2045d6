/// Tells which connection keeps libcurl busy in vain, from what is seen of its thread every now and then.
///
/// Busy is a thread that uses the processor, which it does not while it waits, in a callback or because the machine is
/// suspended. In vain is what brings next to nothing of any request or response. And the connection to blame is one that
/// much was read from meanwhile: a turn with thousands of handshakes is long too, but reads little from each.
struct VainWork {
    /// What the thread has done since it began.
    struct Account {
        /// What it has used of the processor.
        let processorTime: Duration
        /// How many bytes of heads and bodies went through our callbacks.
        let usefulBytes: UInt64
    }

    /// A connection that is to be cut.
    struct Verdict {
        let socket: WatchedSocket
        /// How many bytes were read from it since the thread had been busy before.
        let bytes: UInt64
    }

    /// How often it has to be found at it, more often than not.
    static let patience = 4
    /// What of the processor has to be used to be busy: a tenth of the time between two looks.
    static let leastProcessorTime = TurnWatchdog.interval / 10
    /// How many bytes have to be read meanwhile: a record of TLS. Fewer may only seem to be, since what has come
    /// and what waits are not counted at the same moment.
    static let leastBytes: UInt64 = 16 * 1024
    /// How many bytes may be read for each that is good for something. The smallest frame of HTTP/2 that carries
    /// anything has 9 others, and the smallest chunk 5.
    static let wastePerByte: UInt64 = 100

    /// How many looks it may take to use that much, because the thread may have to share the processor with many.
    /// Then what was found out before begins to be forgotten.
    static let longestSpan = 5

    /// The state of affairs that the next one is compared with.
    private struct Baseline {
        let account: Account
        let read: [WatchedSocket: UInt64]
        var looks = 0
    }

    private var baseline: Baseline?
    private var findings: [WatchedSocket: Int] = [:]

    /// Judges what was done since the last time that the thread had been busy.
    ///
    /// - Parameter read: How many bytes were read from each connection since that was made; asked for only when the
    ///   thread was busy, or may be from now on.
    /// - Returns: The connection to cut. One at a time: if there are others, they keep the thread busy still.
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

    /// - Parameter news: How many bytes were read from each connection since then.
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
