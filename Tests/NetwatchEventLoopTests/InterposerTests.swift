internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Synchronization
internal import Testing

/// The interposer of CNetwatchTestSupport for the thread sanitizer. Without it, the sanitizer reports false races in
/// these tests. Its source explains the cause.
@Suite struct InterposerTests {
    private final class Counter: Sendable {
        let value = Lock(0)
    }

    @Test func `a contended mutex passes its value between threads`() async throws {
        let counter = Counter()
        let done = Recorder<Bool>()
        for _ in 0..<4 {
            try startDetachedThread(named: "contender") {
                for _ in 0..<20_000 { counter.value.withLock { $0 += 1 } }
                done.record(true)
            }
        }
        try await done.wait { $0.count == 4 }
        #expect(counter.value.withLock { $0 } == 80_000)
    }

    private final class Box {
        var value = 1
    }

    private final class Flag: Sendable {
        let isSet = Atomic(false)
    }

    /// The flag is relaxed, so only the continuation synchronizes the threads; a lock or a semaphore would synchronize
    /// them, too. Because the closure waits for the flag, the task never suspends.
    @Test func `a continuation that is resumed before its task suspends passes its value`() async throws {
        let isResumed = Flag()
        let box = try await withCheckedThrowingContinuation { continuation in
            do {
                try startDetachedThread(named: "resumer") {
                    continuation.resume(returning: Box())
                    isResumed.isSet.store(true, ordering: .relaxed)
                }
            } catch {
                return continuation.resume(throwing: error)
            }
            while !isResumed.isSet.load(ordering: .relaxed) { sched_yield() }
        }
        box.value += 1
        #expect(box.value == 2)
    }
}
