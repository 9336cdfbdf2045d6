internal import Dispatch
internal import Glibc
internal import NetwatchEventLoop
internal import Synchronization

/// Runs one thing at a time, in the order in which it was asked for, on a thread that user code may block.
///
/// What Dispatch's own serial queues do, and two things more, which spare a small request most of its changes of
/// thread: ``begin(_:)`` and ``asyncWithNext(_:)``.
final class SerialQueue: SerialExecutor {
    private enum Work: Sendable {
        case job(UnownedJob)
        case closure(@Sendable () -> Void)
    }

    private struct State {
        var waiting: [Work] = []
        /// Whether a thread works on it, or was asked to.
        var isRunning = false
        /// Whether something is bound to be asked for.
        var isAwaiting = false
    }

    private let state = Mutex(State())
    /// The thread that works on it now, or 0.
    private let thread = Atomic<UInt>(0)

    /// Runs a closure after everything that was asked for before.
    func async(_ body: @escaping @Sendable () -> Void) {
        add(.closure(body))
    }

    /// As ``async(_:)``, but not before the next turn if there is to be one: for what makes no difference until then.
    func asyncWithNext(_ body: @escaping @Sendable () -> Void) {
        add(.closure(body), mayWait: true)
    }

    func after(_ delay: Duration, _ body: @escaping @Sendable () -> Void) {
        Self.threads.asyncAfter(deadline: .now() + delay.inSeconds) { self.async(body) }
    }

    /// Runs a closure at once on the caller's thread. Only for a queue that nobody else knows of yet.
    func begin(_ body: () -> Void) {
        state.withLock { state in
            precondition(!state.isRunning && state.waiting.isEmpty, "the queue is in use")
            state.isRunning = true
        }
        occupy()
        body()
        // What was asked for meanwhile may be anything, which the caller's thread was not lent for.
        if state.withLock({ vacate(&$0) }) { startWorking() }
    }

    /// Says whether something is bound to be asked for, whatever happens. Called on the queue.
    func setAwaiting(_ isAwaiting: Bool) {
        state.withLock { $0.isAwaiting = isAwaiting }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        add(.job(UnownedJob(job)))
    }

    func checkIsolated() {
        precondition(isCurrent, "not on the queue")
    }

    private var isCurrent: Bool { thread.load(ordering: .relaxed) == UInt(pthread_self()) }

    // MARK: The threads

    private static let threads = DispatchQueue.global(qos: .utility)

    private func add(_ work: Work, mayWait: Bool = false) {
        let isIdle = state.withLock { state in
            state.waiting.append(work)
            guard !state.isRunning, !(mayWait && state.isAwaiting) else { return false }
            state.isRunning = true
            return true
        }
        if isIdle { startWorking() }
    }

    /// In a child of fork(2) Dispatch counts on threads that only the parent has, so the caller's has to do.
    private func startWorking() {
        guard !ForkedChild.isCurrent else { return work() }
        ForkedChild.watch()
        Self.threads.async { self.work() }
    }

    private func work() {
        occupy()
        while let items = takeWaiting() {
            for item in items { run(item) }
        }
    }

    /// Returns `nil`, and lets the thread go, when nothing waits.
    private func takeWaiting() -> [Work]? {
        state.withLock { state in
            guard !state.waiting.isEmpty else {
                vacate(&state)
                return nil
            }
            defer { state.waiting = [] }
            return state.waiting
        }
    }

    private func run(_ item: Work) {
        switch item {
        case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
        case .closure(let body): body()
        }
    }

    private func occupy() {
        thread.store(UInt(pthread_self()), ordering: .relaxed)
    }

    /// The thread leaves. Returns whether another has to take its place.
    @discardableResult
    private func vacate(_ state: inout State) -> Bool {
        thread.store(0, ordering: .relaxed)
        state.isRunning = !state.waiting.isEmpty
        return state.isRunning
    }
}

extension Duration {
    var inSeconds: Double { self / .seconds(1) }

    /// Seconds as Foundation has them; what is not a time, or below zero, is none.
    init(seconds: Double) {
        let longest = Double(Int32.max)
        self = seconds > 0 ? .seconds(min(seconds, longest)) : .zero
    }
}
