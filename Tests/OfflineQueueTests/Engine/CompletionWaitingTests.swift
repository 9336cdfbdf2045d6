internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// The store queries that many callers cause while they wait until their requests are finished.
@Suite(.timeLimit(.minutes(5))) struct CompletionWaitingTests {
    private let directory = TemporaryDirectory(marker: "ends")

    /// A store that counts the queries for the states and the details of requests.
    private struct CountingStore: WrappedStore {
        final class ReadCounter: Sendable {
            let storedStates = Lock(0)
            let details = Lock(0)
        }

        let inner: any QueueStore
        let reads = ReadCounter()
        let asked = ChangeSignal()

        func storedStates(of ids: [String]) async throws -> [String: StoredState] {
            defer { asked.post() }
            reads.storedStates.withLock { $0 += 1 }
            return try await inner.storedStates(of: ids)
        }

        func details(of id: String) async throws -> RequestDetails? {
            reads.details.withLock { $0 += 1 }
            return try await inner.details(of: id)
        }
    }

    @Test func `a change causes one store query for all waiters, and wakes those whose requests finished`()
        async throws
    {
        let configuration = OfflineQueue.Configuration(directory: directory.path)
        let store = CountingStore(inner: try await SQLiteQueueStore(directory: directory.path))
        let queue = OfflineQueue(
            configuration: configuration,
            store: store,
            sender: FakeSender(),
            gate: FakeGate(.notReachable)
        )
        let waiters = 50
        let ids = (0..<waiters).map { "waited-\($0)" }
        for id in ids + ["other"] {
            let request = QueueRequest(method: "POST", url: "https://example.com/")
            _ = try await queue.enqueue(request, options: EnqueueOptions(id: id))
        }
        let waiting = ids.map { id in Task { try await queue.result(of: id)?.summary.state } }
        try await store.asked.until { store.reads.storedStates.withLock { $0 } == waiters }
        let changes = 20
        for number in 0..<changes {
            _ = try await number.isMultiple(of: 2) ? queue.hold(["other"]) : queue.release(["other"])
        }
        #expect(try await queue.cancel([ids[7]]) == [.done(.cancelled)])
        #expect(try await waiting[7].value == .cancelled)
        // The states are queried at most once for each waiter and once for each change. The details are queried once,
        // for the result.
        #expect(store.reads.storedStates.withLock { $0 } <= waiters + changes + 1)
        #expect(store.reads.details.withLock { $0 } == 1)
        _ = try await queue.cancel(ids)
        for task in waiting { #expect(try await task.value == .cancelled) }
        await queue.stop()
    }
}
