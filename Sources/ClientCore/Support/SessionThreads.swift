internal import Dispatch
internal import Foundation
internal import NetwatchEventLoop

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
