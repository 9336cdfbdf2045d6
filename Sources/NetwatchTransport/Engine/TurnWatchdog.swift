internal import Dispatch
internal import Glibc
internal import NetwatchEventLoop
internal import Synchronization

/// Cuts connections that keep libcurl busy in vain.
///
/// An HTTP/2 server that sends frames without a byte of a body (empty `DATA`, `PRIORITY`, `WINDOW_UPDATE`, frames of no
/// known type) keeps libcurl 7.88.1 reading for as long as they come: it looks at no timeout, calls nobody back, and
/// does not return. As one thread serves every session of the process, one server could hold them all. So a thread
/// beside it looks what comes of libcurl's work, and ends such a connection with `shutdown(2)`, after about two seconds.
///
/// A turn costs two writes to memory, a callback one. The thread looks twice a second while there are turns, and sleeps
/// when there was none between two looks. What is said to happen on the engine's thread is called there.
final class TurnWatchdog: Sendable {
    /// A connection that was cut.
    struct Cut {
        /// By which transfers know which connection they had.
        let ends: ConnectionEnds
        /// How many bytes of no use had come over it between the last looks.
        let bytes: UInt64
    }

    /// How long the thread waits between two looks; ``VainWork/patience`` of them are enough.
    static let interval = Duration.milliseconds(500)

    private struct Sockets {
        var watched: [CInt: UInt64] = [:]
        var cut: [CInt: Cut] = [:]
        var nextNumber: UInt64 = 0
    }

    /// Odd while one is under way.
    private let turns = Atomic<UInt64>(0)
    private let usefulBytes = Atomic<UInt64>(0)
    private let sockets = Mutex(Sockets())
    private let hasCuts = Atomic<Bool>(false)
    private let isAsleep = Atomic<Bool>(false)
    private let isStopped = Atomic<Bool>(false)
    private let bell = DispatchSemaphore(value: 0)
    /// The processor time of the engine's thread (`pthread_getcpuclockid(3)`).
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

    /// Ends the thread.
    func stop() {
        isStopped.store(true, ordering: .sequentiallyConsistent)
        bell.signal()
    }

    // MARK: On the engine's thread

    /// libcurl is about to be called.
    func turnBegins() {
        turns.store(turns.load(ordering: .relaxed) + 1, ordering: .sequentiallyConsistent)
        if isAsleep.load(ordering: .sequentiallyConsistent) { wakeUp() }
    }

    /// libcurl has returned.
    func turnEnds() {
        turns.store(turns.load(ordering: .relaxed) + 1, ordering: .releasing)
    }

    /// libcurl has brought or taken bytes of a head or a body.
    func hasMoved(_ count: Int) {
        usefulBytes.store(usefulBytes.load(ordering: .relaxed) + UInt64(count), ordering: .relaxed)
    }

    /// A connection may be cut, until ``remove(_:)``, which has to come before its descriptor is closed.
    func add(_ descriptor: CInt) {
        noteThread()
        sockets.withLock { sockets in
            sockets.watched[descriptor] = sockets.nextNumber
            sockets.nextNumber += 1
        }
    }

    /// - Returns: What has become of the connection, if it was cut.
    func remove(_ descriptor: CInt) -> Cut? {
        sockets.withLock { sockets in
            sockets.watched[descriptor] = nil
            defer { hasCuts.store(!sockets.cut.isEmpty, ordering: .releasing) }
            return sockets.cut.removeValue(forKey: descriptor)
        }
    }

    /// The connections that were cut and are open still, by descriptor.
    var cuts: [CInt: Cut] {
        hasCuts.load(ordering: .acquiring) ? sockets.withLock { $0.cut } : [:]
    }

    private func wakeUp() {
        noteThread()
        if isAsleep.exchange(false, ordering: .sequentiallyConsistent) { bell.signal() }
    }

    /// Whose processor time is to be looked at.
    private func noteThread() {
        var clock = clockid_t()
        if pthread_getcpuclockid(pthread_self(), &clock) == 0 { self.clock.store(clock, ordering: .relaxed) }
    }

    // MARK: On the thread beside it

    private func run() {
        var seen = turns.load(ordering: .sequentiallyConsistent)
        var work = VainWork()
        sleep(after: seen)
        while !isStopped.load(ordering: .sequentiallyConsistent) {
            look(&work)
            _ = bell.wait(timeout: .now() + Self.dispatchInterval)
            let turn = turns.load(ordering: .sequentiallyConsistent)
            let isStopped = isStopped.load(ordering: .sequentiallyConsistent)
            if !isStopped, turn.isMultiple(of: 2), turn == seen { sleep(after: turn) }
            seen = turn
        }
    }

    /// Waits for a turn after that one.
    private func sleep(after turn: UInt64) {
        isAsleep.store(true, ordering: .sequentiallyConsistent)
        let hasBegun = turns.load(ordering: .sequentiallyConsistent) != turn
        // Unless that turn has seen us asleep, and rings.
        if hasBegun, isAsleep.exchange(false, ordering: .sequentiallyConsistent) { return }
        bell.wait()
    }

    private func look(_ work: inout VainWork) {
        let account = VainWork.Account(
            processorTime: processorTime,
            usefulBytes: usefulBytes.load(ordering: .relaxed)
        )
        // While it is locked no descriptor is closed.
        sockets.withLock { sockets in
            let verdict = work.judge(account) {
                sockets.watched.reduce(into: [:]) { read, entry in
                    let socket = WatchedSocket(descriptor: entry.key, number: entry.value)
                    read[socket] = socket.readBytes
                }
            }
            guard let socket = verdict?.socket, let bytes = verdict?.bytes else { return }
            sockets.cut[socket.descriptor] = Cut(ends: socket.ends, bytes: bytes)
            hasCuts.store(true, ordering: .releasing)
            socket.shutDown()
        }
    }

    private var processorTime: Duration {
        var time = timespec()
        // It fails when the thread has ended, and then there are no turns either.
        clock_gettime(clock.load(ordering: .relaxed), &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    private static let dispatchInterval = DispatchTimeInterval.milliseconds(
        Int(interval / .milliseconds(1))
    )
}
