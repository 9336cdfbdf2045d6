internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Synchronization
internal import Testing

/// The interposer of CNetwatchTestSupport for the thread sanitizer. Without it, the sanitizer reports a false race for
/// a contended `Mutex`. Its source explains the cause.
@Suite struct InterposerTests {
    private final class Counter: Sendable {
        let value = Mutex(0)
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
}
