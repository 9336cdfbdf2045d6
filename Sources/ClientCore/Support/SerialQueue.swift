internal import Dispatch
internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import Synchronization

/// A serial queue that runs work in the order in which it was submitted, on threads that the program's code may block.
///
/// It works like a serial `DispatchQueue`. The additional functions ``begin(on:_:)`` and ``setAwaiting(_:)`` save most
/// of the thread switches of a small request.
final class SerialQueue: SerialExecutor {
    private enum Work: Sendable {
        case job(UnownedJob)
        case closure(@Sendable () -> Void)
        case call(IsolatedCall)
    }

    private struct State {
        var waiting: [Work] = []
        /// Whether a thread runs the queue, or was requested for it.
        var isRunning = false
        /// Whether more work is certain to be submitted.
        var isAwaiting = false
    }

    private let threads: SessionThreads
    private let state = Lock(State())
    /// The thread that currently runs the queue, or 0.
    private let thread = Atomic<UInt>(0)

    init(_ threads: SessionThreads) {
        self.threads = threads
    }

    /// Runs a closure after all work submitted before it.
    func async(_ body: @escaping @Sendable () -> Void) {
        add(.closure(body))
    }

    /// Calls a closure that is isolated to an actor of this queue, after all work submitted before it.
    ///
    /// - Parameter isDeferred: Whether no thread is woken if more work is certain to be submitted
    ///   (``setAwaiting(_:)``). The closure then runs when that work arrives, before it. Use this only for closures that
    ///   can wait that long. Default: `false`.
    func async<Isolation: Actor>(
        on actor: Isolation,
        isDeferred: Bool = false,
        _ body: @escaping @Sendable (isolated Isolation) -> Void
    ) {
        add(.call(IsolatedCall(actor, body)), isDeferred: isDeferred)
    }

    func after(_ delay: Duration, _ body: @escaping @Sendable () -> Void) {
        threads.after(delay) { self.async(body) }
    }

    /// Calls a closure immediately on the caller's thread. Only for a queue that no other code can reach yet.
    func begin<Isolation: Actor>(
        on actor: Isolation,
        _ body: @escaping @Sendable (isolated Isolation) -> Void
    ) {
        state.withLock { state in
            precondition(!state.isRunning && state.waiting.isEmpty, "the queue is in use")
            state.isRunning = true
        }
        enterThread()
        IsolatedCall(actor, body)()
        // Work that was submitted in the meantime may block, so it runs on a thread of the pool.
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

    private var isCurrent: Bool { thread.load(ordering: .relaxed) == Self.currentThread }

    /// The calling thread. Not inlined into asynchronous functions: glibc declares `pthread_self` as `const`, so the
    /// optimizer might use its result after another thread has resumed the function.
    private static var currentThread: UInt {
        @inline(never) get { UInt(pthread_self()) }
    }

    // MARK: Threads

    private func add(_ work: Work, isDeferred: Bool = false) {
        let isIdle = state.withLock { state in
            // Usually a handler waits, and the events of the transfer follow.
            if state.waiting.isEmpty { state.waiting.reserveCapacity(2) }
            state.waiting.append(work)
            guard !state.isRunning, !(isDeferred && state.isAwaiting) else { return false }
            state.isRunning = true
            return true
        }
        if isIdle { startWorking() }
    }

    /// Requests a thread of the session to run the work. In a child of fork(2), the caller's thread runs the work,
    /// because Dispatch relies on threads that only the parent has.
    private func startWorking() {
        guard !ForkedChild.isCurrent else { return work() }
        ForkedChild.watch()
        threads.run(self)
    }

    /// Runs all waiting work. Called by ``SessionThreads``.
    func work() {
        enterThread()
        while let items = takeWaiting() {
            for item in items { run(item) }
        }
    }

    /// Removes and returns all waiting work. If there is none, gives up the thread and returns `nil`.
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
        case .call(let call): call()
        }
    }

    private func enterThread() {
        thread.store(Self.currentThread, ordering: .relaxed)
    }

    /// Gives up the thread. Returns whether work is waiting, so that another thread is needed.
    @discardableResult
    private func leaveThread(_ state: inout State) -> Bool {
        thread.store(0, ordering: .relaxed)
        state.isRunning = !state.waiting.isEmpty
        return state.isRunning
    }
}

/// The threads that run the serial queues of a session. They are threads of Dispatch's pool.
///
/// The program's code, for example a retrier, may block such a thread for ever. Therefore each session has a limited
/// number of threads, and a queue beyond the limit waits until another queue has no more work. A session whose code
/// blocks all its threads stops only itself.
final class SessionThreads: Sendable {
    /// The maximum number of threads: the number of processors, but at least 16 and at most 64.
    ///
    /// It is related to the number of processors, because Dispatch runs that many threads at a time unless threads
    /// block. Dispatch starts at most 255 threads, about one a second while all others are blocked (measured with Swift
    /// 6.3.1). With at most 64 threads, one session cannot block all of them.
    static let maximum = min(64, max(16, ProcessInfo.processInfo.activeProcessorCount))

    private static let pool = DispatchQueue.global(qos: .utility)

    private struct State {
        /// The number of queues that run, or that Dispatch will run.
        var running = 0
        /// The queues that wait for a thread.
        var waiting = FIFOQueue<SerialQueue>()

        /// Returns whether the queue may run now. Otherwise it waits.
        mutating func admit(_ queue: SerialQueue) -> Bool {
            guard running < SessionThreads.maximum else {
                waiting.append(queue)
                return false
            }
            running += 1
            return true
        }

        /// Records that a queue has no more work. Returns the queue that runs instead of it.
        mutating func replacement() -> SerialQueue? {
            let next = waiting.popFirst()
            if next == nil { running -= 1 }
            return next
        }
    }

    private let state = Lock(State())

    /// Runs the work of a queue as soon as a thread is available.
    func run(_ queue: SerialQueue) {
        if state.withLock({ $0.admit(queue) }) { start(queue) }
    }

    /// Runs a closure after a delay. The closure must not call code of the program, because the limit does not apply.
    func after(_ delay: Duration, _ body: @escaping @Sendable () -> Void) {
        Self.pool.asyncAfter(deadline: .now() + delay.inSeconds, execute: body)
    }

    private func start(_ queue: SerialQueue) {
        Self.pool.async {
            queue.work()
            if let next = self.state.withLock({ $0.replacement() }) { self.start(next) }
        }
    }
}
