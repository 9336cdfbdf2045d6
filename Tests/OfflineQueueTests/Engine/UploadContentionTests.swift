internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// Uploads, requests and imports that compete for the capacity of a queue.
@Suite(.timeLimit(.minutes(5))) struct UploadContentionTests {
    private let directory = TemporaryDirectory(marker: "contention")
    private let files = TemporaryDirectory()

    /// Opens a queue that is limited to 200,000 bytes and sends nothing.
    private func open(
        stall: Duration = .seconds(3600),
        requests: Int = 1000
    ) async throws -> (OfflineQueue, InterferingStore) {
        var settings = StoreSettings()
        settings.limits.requests = requests
        settings.limits.bytes = 200_000
        settings.limits.laneShare = 1
        settings.limits.diskReserve = 0
        let store = InterferingStore(
            inner: try await SQLiteQueueStore(directory: directory.path, settings: settings)
        )
        var configuration = OfflineQueue.Configuration(directory: directory.path)
        configuration.limits = settings.limits
        let queue = OfflineQueue(
            configuration: configuration,
            store: store,
            sender: FakeSender(),
            gate: FakeGate(.notReachable),
            uploadStallTimeout: stall
        )
        return (queue, store)
    }

    private let request = QueueRequest(
        method: "PUT",
        url: "https://example.com/",
        body: .data(Data(count: 60_000))
    )

    private var blocking: EnqueueOptions {
        var options = EnqueueOptions()
        options.whenFull = .block
        return options
    }

    @Test func `an upload continues when another caller removed the stalled one`() async throws {
        let (queue, store) = try await open(stall: .zero)
        _ = try await queue.appendToBody("old", Data(count: 150_000), at: 0)
        // The other caller removes the upload after this caller has counted the uploads.
        store.interfere(at: .room) { _ = try await queue.removeStagedBody("old") }
        #expect(try await queue.appendToBody("new", Data(count: 60_000), at: 0) == 60_000)
        await queue.stop()
    }

    @Test func `a request waits for the capacity of an upload, and is accepted when the upload is removed`()
        async throws
    {
        let (queue, store) = try await open()
        for (id, length) in ["short": 1000, "long": 150_000] {
            _ = try await queue.appendToBody(id, Data(count: length), at: 0)
        }
        let call = Task { try await queue.enqueue(request, options: blocking).outcome }
        try await store.refusals.wait { $0.count == 1 }
        _ = try await queue.removeStagedBody("short")
        // The waiting call tries again, is refused again, and continues to wait.
        try await store.refusals.wait { $0.count == 2 }
        _ = try await queue.removeStagedBody("long")
        #expect(try await call.value == .accepted)
        await queue.stop()
    }

    @Test func `the upload of a request that waits for capacity counts against the quota of its user`()
        async throws
    {
        let (queue, store) = try await open(requests: 1)
        var quota = UserQuota()
        quota.stagedBytes = 10
        let user = Submitter(user: 7, quota: quota)
        _ = try await queue.enqueue(request, options: EnqueueOptions(id: "first"))
        _ = try await queue.appendToBody("a", Data(count: 7), at: 0, for: .request, by: user)
        var options = blocking
        options.submitter = user
        let staged = QueueRequest(method: "PUT", url: "https://example.com/", body: .staged(id: "a", size: 7))
        let call = Task { [options] in try await queue.enqueue(staged, options: options).outcome }
        try await store.refusals.wait { $0.count == 1 }
        func upload() async throws -> Int64 {
            try await queue.appendToBody("b", Data(count: 7), at: 0, for: .request, by: user)
        }
        #expect(await errorCode { _ = try await upload() } == .quotaExceeded)
        _ = try await queue.cancel(["first"])
        #expect(try await call.value == .accepted)
        #expect(try await upload() == 7)
        await queue.stop()
    }

    @Test func `a large body of a request that waits for capacity counts against the quota of its user`()
        async throws
    {
        let (queue, _) = try await open(requests: 1)
        var quota = UserQuota()
        quota.stagedBytes = 100_000
        let user = Submitter(user: 7, quota: quota)
        _ = try await queue.enqueue(request, options: EnqueueOptions(id: "first"))
        var options = blocking
        options.submitter = user
        let large = QueueRequest(method: "PUT", url: "https://example.com/", body: .data(Data(count: 70_000)))
        // `nil` for an accepted request.
        let ends = Recorder<QueueError.Code?>()
        let calls = (0..<2).map { _ in
            Task { [options] in
                ends.record(await errorCode { _ = try await queue.enqueue(large, options: options) })
            }
        }
        defer { for call in calls { call.cancel() } }
        try await ends.wait { $0.count == 1 }
        #expect(ends.values == [.quotaExceeded])
        _ = try await queue.cancel(["first"])
        try await ends.wait { $0.count == 2 }
        #expect(ends.values == [.quotaExceeded, nil])
        let size = try await queue.appendToBody("a", Data(count: 70_000), at: 0, for: .request, by: user)
        #expect(size == 70_000, "the stored request counts no longer")
        await queue.stop()
    }

    @Test func `the upload of a refused request no longer counts against the quota of its user`()
        async throws
    {
        let (queue, _) = try await open(requests: 1)
        var quota = UserQuota()
        quota.stagedBytes = 10
        var options = EnqueueOptions()
        options.submitter = Submitter(user: 7, quota: quota)
        _ = try await queue.enqueue(request)
        for id in ["a", "b"] {
            _ = try await queue.appendToBody(id, Data(count: 7), at: 0, for: .request, by: options.submitter)
            let body = QueueRequest.Body.staged(id: id, size: 7)
            let staged = QueueRequest(method: "PUT", url: "https://example.com/", body: body)
            #expect(await errorCode { _ = try await queue.enqueue(staged, options: options) } == .queueFull)
        }
        await queue.stop()
    }

    @Test func `a request waits until an upload stalls`() async throws {
        let (queue, _) = try await open(stall: .milliseconds(200))
        _ = try await queue.appendToBody("a", Data(count: 150_000), at: 0)
        #expect(try await queue.enqueue(request, options: blocking).outcome == .accepted)
        #expect(await queue.stagedBodies().isEmpty)
        await queue.stop()
    }

    @Test func `an import can use the capacity that uploads do not use`() async throws {
        let path = try await export()
        let (queue, _) = try await open()
        _ = try await queue.appendToBody("a", Data(count: 150_000), at: 0)
        #expect(await errorCode { _ = try await queue.importRequests(from: path) } == .queueFull)
        _ = try await queue.removeStagedBody("a")
        #expect(try await queue.importRequests(from: path).imported == 1)
        await queue.stop()
    }

    @Test func `an upload that starts after an import's check of the capacity is counted`() async throws {
        let path = try await export()
        let (queue, store) = try await open()
        store.interfere(at: .restore) {
            _ = try await queue.appendToBody("a", Data(count: 150_000), at: 0)
        }
        #expect(await errorCode { _ = try await queue.importRequests(from: path) } == .queueFull)
        await queue.stop()
    }

    @Test func `an import removes stalled uploads`() async throws {
        let path = try await export()
        let (queue, _) = try await open(stall: .zero)
        _ = try await queue.appendToBody("a", Data(count: 150_000), at: 0)
        #expect(try await queue.importRequests(from: path).imported == 1)
        await queue.stop()
    }

    /// Returns the path of an export with one request.
    private func export() async throws -> String {
        let data = try await withQueue(TemporaryDirectory()) { queue, _ in
            _ = try await queue.enqueue(request)
            return try await queue.exported()
        }
        return try file(data, in: files)
    }
}

/// A store that calls a closure of the test once, at a given step of a call.
private final class InterferingStore: WrappedArchive {
    enum Step { case room, restore }

    let inner: any QueueStore
    /// The error codes of the refused calls of ``enqueue(_:)``.
    let refusals = Recorder<QueueError.Code?>()
    private let actions = Lock<[Step: @Sendable () async throws -> Void]>([:])

    init(inner: any QueueStore) {
        self.inner = inner
    }

    func interfere(at step: Step, _ action: @escaping @Sendable () async throws -> Void) {
        actions.withLock { $0[step] = action }
    }

    private func reach(_ step: Step) async throws {
        let action = actions.withLock { $0.removeValue(forKey: step) }
        try await action?()
    }

    func enqueue(_ requests: [NewRequest]) async throws -> [EnqueuedRequest] {
        do {
            return try await inner.enqueue(requests)
        } catch {
            refusals.record((error as? QueueError)?.code)
            throw error
        }
    }

    func availableCapacity() async throws -> AvailableCapacity {
        try await reach(.room)
        return try await inner.archive.availableCapacity()
    }

    func restore(_ requests: [RestoredRequest]) async throws -> [Restoration] {
        try await reach(.restore)
        return try await inner.archive.restore(requests)
    }
}
