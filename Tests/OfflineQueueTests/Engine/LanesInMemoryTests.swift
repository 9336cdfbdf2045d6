internal import Foundation
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

/// Queues with requests to more hosts than lanes may be in memory, and more than are read from the store at once.
@Suite(.timeLimit(.minutes(5))) struct LanesInMemoryTests {
    private static let hosts = 1200
    private static let limit = 40

    private let directory = TemporaryDirectory()
    private let changes = ChangeSignal()

    /// Opens a queue that has at most 40 lanes in memory, and starts it.
    private func open(_ sender: FakeSender, gate: FakeGate = FakeGate()) async throws -> OfflineQueue {
        let queue = try await directory.openQueue(sender, gate: gate, signal: changes, isStarted: false)
        await queue.setMaximumLanes(Self.limit)
        try await queue.start()
        return queue
    }

    private func enqueue(in queue: OfflineQueue, label: String? = nil) async throws {
        for index in 0..<Self.hosts {
            let request = QueueRequest(method: "POST", url: "https://h\(index).example/")
            _ = try await queue.enqueue(request, options: EnqueueOptions(lane: label))
        }
    }

    private func hosts(_ attempts: [Attempt]) -> Set<String> { Set(attempts.map(\.url)) }

    @Test func `requests to all hosts are delivered, also those of an earlier run`() async throws {
        let sender = FakeSender { _ in .status(200) }
        let first = try await open(FakeSender { _ in .unreachable }, gate: FakeGate(.notReachable))
        try await enqueue(in: first)
        #expect(await first.lanesInMemory <= Self.limit)
        await first.stop()
        let second = try await open(sender)
        try await changes.until(second) { $0[.delivered] == Self.hosts }
        #expect(await second.lanesInMemory <= Self.limit)
        try await enqueue(in: second)
        try await changes.until(second) { $0[.delivered] == 2 * Self.hosts }
        #expect(hosts(sender.attempts).count == Self.hosts)
        await second.stop()
    }

    @Test func `a flush of some lanes tries all of them`() async throws {
        let sender = FakeSender { _ in .status(200) }
        let queue = try await open(sender, gate: FakeGate(.notReachable))
        try await enqueue(in: queue, label: "a")
        _ = try await queue.enqueue(QueueRequest(method: "POST", url: "https://other.example/"))
        #expect(sender.attempts.isEmpty)
        _ = try await queue.flush(lane: "a")
        try await changes.until(queue) { $0[.delivered] == Self.hosts }
        #expect(!hosts(sender.attempts).contains("https://other.example/"))
        await queue.stop()
    }

    @Test func `requests that end before their lanes are loaded leave no trace`() async throws {
        let queue = try await open(FakeSender(), gate: FakeGate(.notReachable))
        try await enqueue(in: queue)
        #expect(await queue.unloadedLanes >= Self.hosts - Self.limit)
        _ = try await queue.cancel(matching: RequestFilter())
        try await changes.until(queue) { $0[.cancelled] == Self.hosts }
        // The last changes of lanes may not have been handled yet.
        while await queue.unloadedLanes > 0 { await Task.yield() }
        await queue.stop()
    }
}

extension OfflineQueue {
    fileprivate func setMaximumLanes(_ count: Int) { scheduler.settings.maximumLanes = count }
    fileprivate var lanesInMemory: Int { scheduler.lanes.count }
    fileprivate var unloadedLanes: Int { scheduler.unloaded.count }
}
