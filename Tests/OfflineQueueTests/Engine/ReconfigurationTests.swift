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
        var limits = configuration.limits
        limits.requests = 2
        queue.use(limits, configuration.retention)
        #expect(try await waiting.value == .accepted)
        await #expect(throws: QueueError.self) { try await queue.enqueue(request) }
        limits.requests = 1
        queue.use(limits, configuration.retention)
        #expect(try await queue.statistics().requests == 2, "stored requests remain")
        await queue.stop()
    }

    @Test func `a new retention applies to the next sweep, and the reserve of the disk does not change`()
        async throws
    {
        let clock = TestStoreClock()
        let store = try await directory.openStore(clock: clock)
        _ = try await store.enqueue(["a", "b", "c"].map { try new($0) })
        _ = try await store.edit(.cancel, ["a", "b", "c"])
        _ = try await store.expire()
        #expect(try await store.counts()[.cancelled] == 3)
        var (limits, retention) = (QueueLimits(), StoreSettings.Retention())
        retention.doneCount = 1
        (limits.requests, limits.diskReserve) = (7, 1)
        store.use(limits, retention)
        _ = try await store.expire()
        #expect(try await store.counts()[.cancelled] == 1)
        let used = store.environment.settings.value.limits
        #expect(used.requests == 7 && used.diskReserve == QueueLimits().diskReserve)
        await store.close()
    }
}
