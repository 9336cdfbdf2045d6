internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

/// Threads and tasks that use a ``Lock`` at the same time.
@Suite(.timeLimit(.minutes(5))) struct LockTests {
    private final class Counter: Sendable {
        let count = Lock(0)

        var value: Int { count.withLock { $0 } }

        func increment() {
            count.withLock { Self.increment(&$0) }
        }

        /// Locks before and after a suspension in one function. There the optimizer would share an inlined part of the
        /// two calls.
        func incrementTwice() async {
            count.withLock { Self.increment(&$0) }
            await Task.yield()
            count.withLock { Self.increment(&$0) }
        }

        /// Lets another thread run between the read and the write. If that thread were in the lock, too, one of the
        /// increments would be lost.
        private static func increment(_ count: inout Int) {
            let next = count + 1
            sched_yield()
            count = next
        }
    }

    @Test func `threads that increment a value concurrently lose no increment`() async throws {
        let counter = Counter()
        let ended = Recorder<Bool>()
        for _ in 0..<8 {
            try startDetachedThread(named: "incrementer") {
                for _ in 0..<1000 { counter.increment() }
                ended.record(true)
            }
        }
        try await ended.wait { $0.count == 8 }
        #expect(counter.value == 8000)
    }

    @Test func `a task can lock again after another thread has resumed it, and no increment is lost`()
        async throws
    {
        let counter = Counter()
        let executor = try RotatingExecutor()
        let changes = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<20 {
                group.addTask(executorPreference: executor) {
                    var changes = 0
                    for _ in 0..<100 {
                        let before = executor.currentThread
                        await counter.incrementTwice()
                        if executor.currentThread != before { changes += 1 }
                    }
                    return changes
                }
            }
            return await group.reduce(0, +)
        }
        #expect(counter.value == 4000)
        #expect(changes > 0, "no task was resumed by another thread")
    }

    @Test func `a lock is not available while another thread holds it, and is available afterwards`() throws {
        let counter = Counter()
        let (isLocked, mayUnlock, isUnlocked) = (Gate(), Gate(), Gate())
        try startDetachedThread(named: "lock-holder") {
            counter.count.withLock { count in
                isLocked.open()
                mayUnlock.wait()
                count = 7
            }
            isUnlocked.open()
        }
        isLocked.wait()
        let early = counter.count.withLockIfAvailable { $0 }
        mayUnlock.open()
        isUnlocked.wait()
        let late = counter.count.withLockIfAvailable { $0 }
        #expect(early == nil && late == 7)
    }

    @Test func `an error that the closure throws unlocks the lock`() async throws {
        struct Failure: Error {}
        let counter = Counter()
        #expect(throws: Failure.self) {
            try counter.count.withLock { count in
                count = 1
                throw Failure()
            }
        }
        // On another thread, because a thread that locks twice ends the process.
        let value = try await offPool { counter.count.withLockIfAvailable { $0 } }
        #expect(value == 1)
    }
}
