internal import Dispatch
internal import Glibc
internal import NetwatchEventLoop
internal import Synchronization

/// A serial queue that runs work in the order it was submitted, on a thread that user code may block.
///
/// It works like a serial `DispatchQueue`, plus ``begin(_:)`` and ``asyncDeferred(_:)``, which save most of the
/// thread switches of a small request.
final class SerialQueue: SerialExecutor {
    private enum Work: Sendable {
        case job(UnownedJob)
        case closure(@Sendable () -> Void)
    }

    private struct State {
        var waiting: [Work] = []
        /// Whether a thread is running the queue or was requested to.
        var isRunning = false
        /// Whether more work is certain to be submitted.
        var isAwaiting = false
    }

    private let state = Mutex(State())
    /// The thread that currently runs the queue, or 0.
    private let thread = Atomic<UInt>(0)

    /// Runs a closure after all work submitted before it.
    func async(_ body: @escaping @Sendable () -> Void) {
        add(.closure(body))
    }

    /// Like ``async(_:)``, but if more work is expected (``setAwaiting(_:)``), runs the closure together with that
    /// work. For closures that have no effect until then.
    func asyncDeferred(_ body: @escaping @Sendable () -> Void) {
        add(.closure(body), isDeferred: true)
    }

    func after(_ delay: Duration, _ body: @escaping @Sendable () -> Void) {
        Self.threads.asyncAfter(deadline: .now() + delay.inSeconds) { self.async(body) }
    }

    /// Runs a closure immediately on the caller's thread. Only for a queue that no other code can reach yet.
    func begin(_ body: () -> Void) {
        state.withLock { state in
            precondition(!state.isRunning && state.waiting.isEmpty, "the queue is in use")
            state.isRunning = true
        }
        enterThread()
        body()
        // Work submitted meanwhile may run any code, so it moves to a thread of the pool.
        if state.withLock({ leaveThread(&$0) }) { startWorking() }
    }

    /// Sets whether more work is certain to be submitted. Called on the queue.
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

    // MARK: Threads

    private static let threads = DispatchQueue.global(qos: .utility)

    private func add(_ work: Work, isDeferred: Bool = false) {
        let isIdle = state.withLock { state in
            state.waiting.append(work)
            guard !state.isRunning, !(isDeferred && state.isAwaiting) else { return false }
            state.isRunning = true
            return true
        }
        if isIdle { startWorking() }
    }

    /// Requests a thread from the pool. In a child of fork(2), Dispatch relies on threads that only the parent
    /// has, so the caller's thread runs the work.
    private func startWorking() {
        guard !ForkedChild.isCurrent else { return work() }
        ForkedChild.watch()
        Self.threads.async { self.work() }
    }

    private func work() {
        enterThread()
        while let items = takeWaiting() {
            for item in items { run(item) }
        }
    }

    /// Takes all waiting work. Returns `nil` and gives up the thread if there is none.
    private func takeWaiting() -> [Work]? {
        state.withLock { state in
            guard !state.waiting.isEmpty else {
                leaveThread(&state)
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

    private func enterThread() {
        thread.store(UInt(pthread_self()), ordering: .relaxed)
    }

    /// Gives up the thread. Returns whether another thread must take over.
    @discardableResult
    private func leaveThread(_ state: inout State) -> Bool {
        thread.store(0, ordering: .relaxed)
        state.isRunning = !state.waiting.isEmpty
        return state.isRunning
    }
}
