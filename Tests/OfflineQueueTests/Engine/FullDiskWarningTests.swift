internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

/// The warnings about a full disk.
@Suite(.timeLimit(.minutes(1))) struct FullDiskWarningTests {
    /// A store whose disk is full while a test says so.
    private final class FullStore: WrappedStore {
        let inner: any QueueStore
        let isFull = Lock(true)
        let checks = Lock(0)

        init(inner: any QueueStore) { self.inner = inner }

        func isDiskFull(forBody bytes: Int) async throws -> Bool {
            checks.withLock { $0 += 1 }
            return isFull.withLock { $0 }
        }
    }

    @Test func `the queue warns once when its disk becomes full, and when it has space again`() async throws {
        let directory = TemporaryDirectory(marker: "full-disk")
        let store = FullStore(inner: try await directory.openStore(clock: TestStoreClock()))
        let queue = OfflineQueue(
            configuration: OfflineQueue.Configuration(directory: directory.path),
            store: store,
            sender: FakeSender(),
            gate: FakeGate()
        )
        try await queue.start()
        var warnings = queue.warnings.makeAsyncIterator()
        #expect(await warnings.next()?.hasPrefix("the disk is full, so new requests are refused") == true)
        #expect(await queue.isDiskFull)
        queue.sweeper.shortenPause(to: Duration.zero)
        try await poll { store.checks.withLock { $0 } >= 2 }
        store.isFull.withLock { $0 = false }
        queue.sweeper.shortenPause(to: Duration.zero)
        #expect(await warnings.next() == "the disk has space again, so new requests are accepted")
        #expect(await !queue.isDiskFull)
        await queue.stop()
        #expect(await warnings.next() == nil)
    }
}
