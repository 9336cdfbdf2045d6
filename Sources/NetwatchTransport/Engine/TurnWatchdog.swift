internal import Dispatch
internal import Glibc
internal import NetwatchEventLoop
internal import Synchronization

/// Ends what keeps libcurl from returning.
///
/// An HTTP/2 server that sends frames without a byte of a body, empty `DATA`, `PRIORITY`, `WINDOW_UPDATE`, frames of
/// no known type, keeps libcurl 7.88.1 reading for as long as they come: it looks at no timeout, and calls nobody back.
/// As one thread serves every session of the process, one server would hold them all. So a thread beside it looks how
/// long a turn lasts, and cuts the connection that it reads from with `shutdown(2)`.
///
/// A turn costs two writes to memory of our own. The thread looks twice a second while there are turns, and sleeps
/// when there were none between two looks. ``begin()``, ``end()``, ``add(_:)`` and ``remove(_:)`` are for the engine's
/// thread.
final class TurnWatchdog: Sendable {
    /// A connection that was cut.
    struct Cut {
        /// The port of this end, by which transfers know which connection they had.
        let localPort: Int
        /// How much processor time libcurl had used by then.
        let held: Duration
    }

    /// How long the thread waits between two looks; see ``LongTurn`` for how many it takes.
    static let interval = Duration.milliseconds(500)

    private struct Sockets {
        var watched: [CInt: WatchedSocket] = [:]
        var nextNumber: UInt64 = 0
        var cuts: [Cut] = []
    }

    private let interval: Duration
    /// Odd while one is under way.
    private let turns = Atomic<UInt64>(0)
    private let sockets = Mutex(Sockets())
    private let hasCuts = Atomic<Bool>(false)
    private let isAsleep = Atomic<Bool>(false)
    private let isStopped = Atomic<Bool>(false)
    private let bell = DispatchSemaphore(value: 0)
    /// The processor time of the engine's thread (`pthread_getcpuclockid(3)`).
    private let clock = Atomic<clockid_t>(CLOCK_THREAD_CPUTIME_ID)

    /// Starts the thread, which runs until ``stop()``.
    ///
    /// - Parameter interval: For tests.
    /// - Throws: ``SystemError`` of `pthread_create`.
    init(interval: Duration = TurnWatchdog.interval) throws(SystemError) {
        self.interval = interval
        try startDetachedThread(named: "nw-watchdog") { self.run() }
    }

    func stop() {
        isStopped.store(true, ordering: .sequentiallyConsistent)
        bell.signal()
    }

    // MARK: The engine's thread

    /// libcurl is about to be called.
    func begin() {
        turns.store(turns.load(ordering: .relaxed) + 1, ordering: .sequentiallyConsistent)
        if isAsleep.load(ordering: .sequentiallyConsistent) { wakeUp() }
    }

    /// libcurl has returned. Returns the connections that were cut since the last turn.
    func end() -> [Cut] {
        turns.store(turns.load(ordering: .relaxed) + 1, ordering: .releasing)
        guard hasCuts.load(ordering: .acquiring) else { return [] }
        hasCuts.store(false, ordering: .relaxed)
        return sockets.withLock { sockets in
            defer { sockets.cuts = [] }
            return sockets.cuts
        }
    }

    /// A connection may be read from. It is cut only before ``remove(_:)``, which therefore has to come before its
    /// descriptor is closed.
    func add(_ descriptor: CInt) {
        sockets.withLock { sockets in
            let number = sockets.nextNumber
            sockets.nextNumber += 1
            sockets.watched[descriptor] = WatchedSocket(descriptor: descriptor, number: number)
        }
    }

    func remove(_ descriptor: CInt) {
        sockets.withLock { _ = $0.watched.removeValue(forKey: descriptor) }
    }

    private func wakeUp() {
        var clock = clockid_t()
        if pthread_getcpuclockid(pthread_self(), &clock) == 0 { self.clock.store(clock, ordering: .relaxed) }
        if isAsleep.exchange(false, ordering: .sequentiallyConsistent) { bell.signal() }
    }

    // MARK: The thread beside it

    private func run() {
        var seen = turns.load(ordering: .relaxed)
        var longTurn = LongTurn()
        while !isStopped.load(ordering: .relaxed) {
            let turn = turns.load(ordering: .sequentiallyConsistent)
            if turn.isMultiple(of: 2), turn == seen {
                sleep(after: turn)
            } else {
                if !turn.isMultiple(of: 2), turn == seen { look(at: turn, &longTurn) }
                _ = bell.wait(timeout: .now() + .nanoseconds(interval.wholeNanoseconds))
            }
            seen = turn
        }
    }

    /// Waits for a turn after that one.
    private func sleep(after turn: UInt64) {
        isAsleep.store(true, ordering: .sequentiallyConsistent)
        let isLate = turns.load(ordering: .sequentiallyConsistent) != turn
        // If the turn has seen that we sleep, it rings.
        if isLate, isAsleep.exchange(false, ordering: .sequentiallyConsistent) { return }
        bell.wait()
    }

    private func look(at turn: UInt64, _ longTurn: inout LongTurn) {
        sockets.withLock { sockets in
            let look = LongTurn.Look(
                turn: turn,
                processorTime: processorTime,
                taken: sockets.watched.values.reduce(into: [:]) { $0[$1] = $1.takenBytes }
            )
            guard let verdict = longTurn.judge(look) else { return }
            verdict.socket.shutDown()
            sockets.cuts.append(Cut(localPort: verdict.socket.localPort, held: verdict.held))
            hasCuts.store(true, ordering: .releasing)
        }
    }

    private var processorTime: Duration {
        var time = timespec()
        // It fails when the thread has ended, and then there are no turns either.
        clock_gettime(clock.load(ordering: .relaxed), &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}

extension Duration {
    fileprivate var wholeNanoseconds: Int {
        Int(components.seconds) * 1_000_000_000 + Int(components.attoseconds / 1_000_000_000)
    }
}
