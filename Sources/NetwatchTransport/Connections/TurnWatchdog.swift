internal import Glibc
internal import NetwatchEventLoop
internal import Synchronization

/// A watchdog that shuts down connections that keep libcurl busy without useful data.
///
/// An HTTP/2 server can send frames without body data: empty `DATA`, `PRIORITY`, `WINDOW_UPDATE`, or frames of unknown
/// type. libcurl 7.88.1 reads them for as long as they come. Meanwhile it checks no timeout, calls no callback and does
/// not return. A single server could therefore block the engine's thread, which serves all sessions of the process.
///
/// The watchdog's own thread compares libcurl's work with its results (``BusyLoopDetector``). It shuts such a
/// connection down with `shutdown(2)` after about two seconds.
///
/// A turn is one call of libcurl. The watchdog costs two memory writes per turn and one per callback. Its thread checks
/// twice a second while there are turns, and sleeps after an interval without one. The methods below "On the engine's
/// thread" must be called on that thread.
final class TurnWatchdog: Sendable {
    /// A connection that the watchdog has shut down.
    struct AbortedConnection {
        /// The ports and the remote address of the connection. They identify the transfers that use it.
        let ends: ConnectionEnds
        /// The number of bytes read from the connection between the last two busy checks.
        let bytes: UInt64
    }

    /// The interval between checks. A connection is shut down after ``BusyLoopDetector/requiredSamples`` checks that
    /// suspect it.
    static let interval = Duration.milliseconds(500)

    private struct Sockets {
        var watched: [CInt: UInt64] = [:]
        var aborted: [CInt: AbortedConnection] = [:]
        var nextNumber: UInt64 = 0
    }

    /// A counter that is odd while a turn runs.
    private let turns = Atomic<UInt64>(0)
    private let usefulBytes = Atomic<UInt64>(0)
    private let sockets = Lock(Sockets())
    private let hasAbortedConnections = Atomic<Bool>(false)
    private let isAsleep = Atomic<Bool>(false)
    private let isStopped = Atomic<Bool>(false)
    private let wakeSignal = MonotonicSemaphore()
    /// The CPU clock of the engine's thread (`pthread_getcpuclockid(3)`).
    private let clock = Atomic<clockid_t>(CLOCK_THREAD_CPUTIME_ID)

    /// Starts the thread, which runs until ``stop()``.
    ///
    /// - Parameter onEnd: Called on the thread before it ends, for tests. Default: does nothing.
    /// - Throws: ``SystemError`` of `pthread_create`.
    func start(onEnd: @escaping @Sendable () -> Void = {}) throws(SystemError) {
        try startDetachedThread(named: "nw-watchdog") {
            self.run()
            onEnd()
        }
    }

    /// Stops the thread.
    func stop() {
        isStopped.store(true, ordering: .sequentiallyConsistent)
        wakeSignal.signal()
    }

    // MARK: On the engine's thread

    /// Records that a turn begins. Must be called before each call of libcurl.
    func turnWillBegin() {
        turns.store(turns.load(ordering: .relaxed) + 1, ordering: .sequentiallyConsistent)
        if isAsleep.load(ordering: .sequentiallyConsistent) { wakeUp() }
    }

    /// Records that a turn has ended. Must be called after libcurl has returned.
    func turnDidEnd() {
        turns.store(turns.load(ordering: .relaxed) + 1, ordering: .releasing)
    }

    /// Records that libcurl has delivered or read bytes of a head or a body.
    func recordUsefulBytes(_ count: Int) {
        usefulBytes.store(usefulBytes.load(ordering: .relaxed) + UInt64(count), ordering: .relaxed)
    }

    /// Adds a connection that the watchdog may shut down. ``remove(_:)`` must be called before its descriptor is
    /// closed.
    func add(_ descriptor: CInt) {
        recordThreadClock()
        sockets.withLock { sockets in
            sockets.watched[descriptor] = sockets.nextNumber
            sockets.nextNumber += 1
        }
    }

    /// Removes a connection. Must be called before its descriptor is closed.
    ///
    /// - Returns: The record of the shutdown; `nil` if the watchdog has not shut the connection down.
    func remove(_ descriptor: CInt) -> AbortedConnection? {
        sockets.withLock { sockets in
            sockets.watched[descriptor] = nil
            defer { hasAbortedConnections.store(!sockets.aborted.isEmpty, ordering: .releasing) }
            return sockets.aborted.removeValue(forKey: descriptor)
        }
    }

    /// The connections that the watchdog has shut down and that have not been removed yet, by descriptor.
    var abortedConnections: [CInt: AbortedConnection] {
        hasAbortedConnections.load(ordering: .acquiring) ? sockets.withLock { $0.aborted } : [:]
    }

    private func wakeUp() {
        recordThreadClock()
        if isAsleep.exchange(false, ordering: .sequentiallyConsistent) { wakeSignal.signal() }
    }

    /// Records the CPU clock of the current thread, which is the engine's.
    private func recordThreadClock() {
        var clock = clockid_t()
        if pthread_getcpuclockid(pthread_self(), &clock) == 0 { self.clock.store(clock, ordering: .relaxed) }
    }

    // MARK: On the watchdog's thread

    private func run() {
        var seen = turns.load(ordering: .sequentiallyConsistent)
        var detector = BusyLoopDetector()
        sleep(after: seen)
        while !isStopped.load(ordering: .sequentiallyConsistent) {
            check(&detector)
            wakeSignal.wait(for: Self.interval)
            let turn = turns.load(ordering: .sequentiallyConsistent)
            if turn == seen { sleep(after: turn) }
            seen = turn
        }
    }

    /// Waits for the next turn. Returns immediately if a turn is running, or if the watchdog is stopped.
    ///
    /// - Parameter turn: The last value of ``turns``. It may be odd at the first call: the engine's thread may begin
    ///   its first turn before this thread runs. If that turn never ended, no later turn would wake this thread.
    private func sleep(after turn: UInt64) {
        guard turn.isMultiple(of: 2), !isStopped.load(ordering: .sequentiallyConsistent) else { return }
        isAsleep.store(true, ordering: .sequentiallyConsistent)
        let hasBegun = turns.load(ordering: .sequentiallyConsistent) != turn
        // If a turn began meanwhile and has already reset the flag, it also sends the signal, so the wait below ends.
        if hasBegun, isAsleep.exchange(false, ordering: .sequentiallyConsistent) { return }
        wakeSignal.wait()
    }

    private func check(_ detector: inout BusyLoopDetector) {
        let sample = BusyLoopDetector.Sample(
            processorTime: processorTime,
            usefulBytes: usefulBytes.load(ordering: .relaxed)
        )
        // No descriptor is closed while the lock is held, because ``remove(_:)`` takes it first.
        sockets.withLock { sockets in
            let finding = detector.evaluate(sample) {
                sockets.watched.reduce(into: [:]) { totals, entry in
                    let socket = WatchedSocket(descriptor: entry.key, number: entry.value)
                    totals[socket] = WatchedSocket.readBytes(of: socket.descriptor)
                }
            }
            guard let socket = finding?.socket, let bytes = finding?.bytes else { return }
            sockets.aborted[socket.descriptor] = AbortedConnection(ends: socket.ends, bytes: bytes)
            hasAbortedConnections.store(true, ordering: .releasing)
            socket.shutDown()
        }
    }

    private var processorTime: Duration {
        var time = timespec()
        // This fails only after the engine's thread has ended. There are no more turns then.
        clock_gettime(clock.load(ordering: .relaxed), &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}

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
