internal import Dispatch
internal import Glibc
internal import NetwatchEventLoop
internal import Synchronization

/// Shuts down connections that keep libcurl busy without useful data.
///
/// An HTTP/2 server can send frames without body data: empty `DATA`, `PRIORITY`, `WINDOW_UPDATE`, or frames of unknown
/// type. libcurl 7.88.1 reads them for as long as they come. It checks no timeout, calls no callback and does not
/// return. One thread serves all sessions of the process, so a single server could block them all. A second thread
/// therefore compares libcurl's work with its results, and ends such a connection with `shutdown(2)` after about two
/// seconds.
///
/// A turn is one call of libcurl. The cost is two memory writes per turn and one per callback. The thread checks twice
/// a second while there are turns, and sleeps if there was none between two checks. The methods for the engine's thread
/// must be called on it.
final class TurnWatchdog: Sendable {
    /// A connection that was shut down.
    struct AbortedConnection {
        /// The ends of the connection, by which its transfers are found.
        let ends: ConnectionEnds
        /// The number of useless bytes received between the last checks.
        let bytes: UInt64
    }

    /// The interval between checks. A connection is shut down after ``BusyLoopDetector/requiredSamples`` positive
    /// checks.
    static let interval = Duration.milliseconds(500)

    private struct Sockets {
        var watched: [CInt: UInt64] = [:]
        var aborted: [CInt: AbortedConnection] = [:]
        var nextNumber: UInt64 = 0
    }

    /// A counter that is odd while a turn runs.
    private let turns = Atomic<UInt64>(0)
    private let usefulBytes = Atomic<UInt64>(0)
    private let sockets = Mutex(Sockets())
    private let hasAbortedConnections = Atomic<Bool>(false)
    private let isAsleep = Atomic<Bool>(false)
    private let isStopped = Atomic<Bool>(false)
    private let wakeSignal = DispatchSemaphore(value: 0)
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

    /// Must be called before libcurl is called.
    func turnWillBegin() {
        turns.store(turns.load(ordering: .relaxed) + 1, ordering: .sequentiallyConsistent)
        if isAsleep.load(ordering: .sequentiallyConsistent) { wakeUp() }
    }

    /// Must be called after libcurl has returned.
    func turnDidEnd() {
        turns.store(turns.load(ordering: .relaxed) + 1, ordering: .releasing)
    }

    /// Must be called when libcurl has delivered or read bytes of a head or a body.
    func recordUsefulBytes(_ count: Int) {
        usefulBytes.store(usefulBytes.load(ordering: .relaxed) + UInt64(count), ordering: .relaxed)
    }

    /// Adds a connection that may be shut down. ``remove(_:)`` must be called before its descriptor is closed.
    func add(_ descriptor: CInt) {
        recordThreadClock()
        sockets.withLock { sockets in
            sockets.watched[descriptor] = sockets.nextNumber
            sockets.nextNumber += 1
        }
    }

    /// Removes a connection.
    ///
    /// - Returns: The record of the shutdown, if the connection was shut down.
    func remove(_ descriptor: CInt) -> AbortedConnection? {
        sockets.withLock { sockets in
            sockets.watched[descriptor] = nil
            defer { hasAbortedConnections.store(!sockets.aborted.isEmpty, ordering: .releasing) }
            return sockets.aborted.removeValue(forKey: descriptor)
        }
    }

    /// The connections that were shut down but are not closed yet, by descriptor.
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
            _ = wakeSignal.wait(timeout: .now() + Self.dispatchInterval)
            let turn = turns.load(ordering: .sequentiallyConsistent)
            let isStopped = isStopped.load(ordering: .sequentiallyConsistent)
            if !isStopped, turn.isMultiple(of: 2), turn == seen { sleep(after: turn) }
            seen = turn
        }
    }

    /// Waits for the next turn.
    private func sleep(after turn: UInt64) {
        isAsleep.store(true, ordering: .sequentiallyConsistent)
        let hasBegun = turns.load(ordering: .sequentiallyConsistent) != turn
        // Unless that turn has already reset the flag and will signal.
        if hasBegun, isAsleep.exchange(false, ordering: .sequentiallyConsistent) { return }
        wakeSignal.wait()
    }

    private func check(_ detector: inout BusyLoopDetector) {
        let sample = BusyLoopDetector.Sample(
            processorTime: processorTime,
            usefulBytes: usefulBytes.load(ordering: .relaxed)
        )
        // While the lock is held, no descriptor is closed.
        sockets.withLock { sockets in
            let finding = detector.evaluate(sample) {
                sockets.watched.reduce(into: [:]) { totals, entry in
                    let socket = WatchedSocket(descriptor: entry.key, number: entry.value)
                    totals[socket] = socket.readBytes
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
        // This fails when the thread has ended, and then there are no turns either.
        clock_gettime(clock.load(ordering: .relaxed), &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    private static let dispatchInterval = DispatchTimeInterval.milliseconds(
        Int(interval / .milliseconds(1))
    )
}
