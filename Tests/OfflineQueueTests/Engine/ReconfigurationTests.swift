internal import Foundation
internal import Testing

@testable internal import OfflineQueue

/// Changes of the settings of an open queue.
@Suite(.timeLimit(.minutes(5))) struct ReconfigurationTests {
    private let directory = TemporaryDirectory()

    @Test func `new limits apply to the next request, and let a call that waits for room continue`()
        async throws
    {
        var configuration = OfflineQueue.Configuration(directory: directory.path)
        (configuration.limits.requests, configuration.limits.laneShare) = (1, 1)
        let queue = try await OfflineQueue(
            configuration: configuration,
            sender: FakeSender(),
            gate: FakeGate()
        )
        let request = QueueRequest(method: "GET", url: "http://a.example/")
        _ = try await queue.enqueue(request, options: EnqueueOptions(id: "first"))
        var options = EnqueueOptions(id: "second")
        options.whenFull = .block
        let waiting = Task { [options] in try await queue.enqueue(request, options: options).outcome }
        await #expect(throws: QueueError.self) { try await queue.enqueue(request) }
        configuration.limits.requests = 2
        await queue.use(configuration)
        #expect(try await waiting.value == .accepted)
        await #expect(throws: QueueError.self) { try await queue.enqueue(request) }
        configuration.limits.requests = 1
        await queue.use(configuration)
        #expect(try await queue.statistics().requests == 2, "stored requests remain")
        await queue.stop()
    }

    @Test func `a higher number of requests in flight starts waiting requests at once`() async throws {
        let sender = FakeSender()
        let queue = try await directory.openQueue(sender) { $0.inflight = 1 }
        for id in ["a", "b", "c"] {
            let request = QueueRequest(method: "GET", url: "http://\(id).example/")
            _ = try await queue.enqueue(request, options: EnqueueOptions(id: id))
        }
        var ids: Set = [await sender.nextAttempt().id]
        #expect(sender.attempts.count == 1)
        var configuration = await queue.configuration
        configuration.inflight = 8
        await queue.use(configuration)
        for _ in 0..<2 { ids.insert(await sender.nextAttempt().id) }
        #expect(ids == ["a", "b", "c"])
        await queue.stop()
    }

    @Test func `a new backoff applies to the next delay of a request in flight`() async throws {
        let sender = FakeSender()
        let queue = try await directory.openQueue(sender)
        let request = QueueRequest(method: "GET", url: "http://a.example/")
        _ = try await queue.enqueue(request, options: EnqueueOptions(id: "a"))
        let first = await sender.nextAttempt()
        var configuration = await queue.configuration
        (configuration.backoffBase, configuration.backoffCap) = (.milliseconds(1), .milliseconds(1))
        await queue.use(configuration)
        sender.answer(first, .status(503))
        #expect(await sender.nextAttempt().id == "a")
        await queue.stop()
    }

    @Test func `the store gets the new settings, and those that cannot change keep their values`()
        async throws
    {
        let configuration = OfflineQueue.Configuration(directory: directory.path)
        let queue = try await OfflineQueue(
            configuration: configuration,
            sender: FakeSender(),
            gate: FakeGate()
        )
        var new = configuration
        (new.limits.requests, new.limits.diskReserve) = (7, 1)
        (new.backoffCap, new.stopTimeout) = (.seconds(60), .seconds(50))
        new.meteredInterfaces = ["wlan0"]
        await queue.use(new)
        let used = await queue.configuration
        #expect(used.limits == new.limits)
        #expect(used.backoffCap == .seconds(60) && used.stopTimeout == .seconds(50))
        #expect(used.meteredInterfaces == [])
        let store = try #require(queue.store as? SQLiteQueueStore)
        #expect(store.environment.settings.value == StoreSettings(used))
        await queue.stop()
    }

    @Test func `a new reserve of the disk applies to the next body`() async throws {
        let files = SimulatedSpoolFiles(fault: .init(capacity: 1_000_000))
        let store = try await SQLiteQueueStore(directory: directory.path, files: files)
        let body = Data(count: 300_000)
        let error = await #expect(throws: QueueError.self) { try await store.spool.store(body) }
        #expect(error?.code == .insufficientSpace)
        var settings = StoreSettings()
        settings.limits.diskReserve = 0
        await store.use(settings)
        #expect(try await store.spool.store(body).size == 300_000)
        await store.close()
    }

    @Test func `the reserve of the disk is kept if the size of the file system is unknown`() async throws {
        let files = SimulatedSpoolFiles(fault: .init(capacity: 1_000_000))
        let path = "\(directory.path)/queue"
        let store = try await SQLiteQueueStore(directory: path, files: files)
        // statvfs(3) fails for a directory that does not exist.
        try FileManager.default.moveItem(atPath: path, toPath: "\(path)-moved")
        await store.use(StoreSettings())
        try FileManager.default.moveItem(atPath: "\(path)-moved", toPath: path)
        let error = await #expect(throws: QueueError.self) {
            try await store.spool.store(Data(count: 300_000))
        }
        #expect(error?.code == .insufficientSpace)
        await store.close()
    }

    @Test func `a new retention applies to the next sweep`() async throws {
        let clock = TestStoreClock()
        let store = try await directory.openStore(clock: clock)
        _ = try await store.enqueue(["a", "b", "c"].map { try new($0) })
        _ = try await store.edit(.cancel, ["a", "b", "c"])
        _ = try await store.expire()
        #expect(try await store.counts()[.cancelled] == 3)
        var settings = StoreSettings()
        settings.retention.doneCount = 1
        await store.use(settings)
        _ = try await store.expire()
        #expect(try await store.counts()[.cancelled] == 1)
        await store.close()
    }
}
