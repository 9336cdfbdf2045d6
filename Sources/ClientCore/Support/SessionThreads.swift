internal import Dispatch
internal import Foundation
internal import NetwatchEventLoop
internal import Synchronization

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

    /// The number of queues that a thread runs before it gives the other work of Dispatch's pool a turn: 16. With one,
    /// each small request would wake a thread. Without a limit, two busy sessions could occupy two processors for ever.
    private static let queuesPerTurn = 16

    private struct State {
        /// The queues that have work and wait for a thread.
        var ready = FIFOQueue<SerialQueue>()
        /// The number of threads that run queues, or that Dispatch was asked for.
        var running = 0
        /// Whether Dispatch was asked for a thread that has not started yet.
        var isStarting = false

        /// Returns whether to ask Dispatch for another thread. One at a time is enough, because each thread asks for the
        /// next one before it runs a queue, which may block.
        mutating func mustStartThread() -> Bool {
            guard !ready.isEmpty, !isStarting, running < SessionThreads.maximum else { return false }
            running += 1
            isStarting = true
            return true
        }

        /// Removes and returns the queue that a thread runs next. Without one, the thread ends.
        mutating func next() -> SerialQueue? {
            let queue = ready.popFirst()
            if queue == nil { running -= 1 }
            return queue
        }
    }

    private let state = Mutex(State())

    /// Runs the work of a queue as soon as a thread is available.
    func run(_ queue: SerialQueue) {
        let mustStart = state.withLock { state in
            state.ready.append(queue)
            return state.mustStartThread()
        }
        if mustStart { startThread() }
    }

    /// Runs a closure after a delay. The closure must not call code of the program, because the limit does not apply.
    func after(_ delay: Duration, _ body: @escaping @Sendable () -> Void) {
        Self.pool.asyncAfter(deadline: .now() + delay.inSeconds, execute: body)
    }

    private func startThread() {
        Self.pool.async {
            self.state.withLock { $0.isStarting = false }
            self.runQueues()
        }
    }

    private func runQueues() {
        for _ in 0..<Self.queuesPerTurn {
            let (queue, mustStart) = state.withLock { ($0.next(), $0.mustStartThread()) }
            if mustStart { startThread() }
            guard let queue else { return }
            queue.work()
        }
        Self.pool.async { self.runQueues() }
    }
}
