internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

/// Handlers of ended requests, and webhooks, in a running queue.
@Suite(.timeLimit(.minutes(5))) struct CompletionHandlerTests {
    private let directory = TemporaryDirectory(marker: "tags")
    private let removed = Recorder<Int64>()

    /// A store that records the removed completions, or does not remove them, as if the process ended before.
    private struct Store: WrappedStore {
        let inner: any QueueStore
        let removed: Recorder<Int64>
        var removes = true

        func removeCompletion(at position: Int64) async throws {
            if removes { try await inner.removeCompletion(at: position) }
            removed.record(position)
        }
    }

    private struct Refusal: Error, CustomStringConvertible {
        let description = "the database is busy"
    }

    /// A refusal that records when it is described.
    private struct NotedRefusal: Error, CustomStringConvertible {
        let described: Recorder<Bool>

        var description: String {
            described.record(true)
            return Refusal().description
        }
    }

    private func open(
        _ sender: FakeSender = FakeSender { _ in .status(200, body: "answer") },
        removes: Bool = true,
        backoff: Duration = .seconds(3600)
    ) async throws -> OfflineQueue {
        var configuration = OfflineQueue.Configuration(withLongTimeouts: directory.path)
        configuration.backoffBase = backoff
        configuration.backoffCap = backoff * 2
        configuration.stopTimeout = .milliseconds(200)
        let store = Store(
            inner: try await SQLiteQueueStore(directory: directory.path),
            removed: removed,
            removes: removes
        )
        return OfflineQueue(configuration: configuration, store: store, sender: sender, gate: FakeGate())
    }

    /// Enqueues a request and waits for its end.
    private func finish(_ id: String, tag: String?, in queue: OfflineQueue) async throws {
        var options = EnqueueOptions(isFIFO: true, id: id)
        options.tag = tag
        _ = try await queue.enqueue(
            QueueRequest(method: "POST", url: "https://example.com/"),
            options: options
        )
        _ = try await queue.result(of: id)
    }

    @Test func `after a restart, a handler receives the requests that ended before, once and in order`()
        async throws
    {
        let first = try await open()
        try await first.start()
        for id in ["a", "b"] { try await finish(id, tag: "t", in: first) }
        try await finish("c", tag: nil, in: first)
        await first.stop()
        let second = try await open()
        #expect(try await second.statistics().completions.map(\.count) == [2])
        let received = Recorder<RequestDetails>()
        try await second.onCompletion(tag: "t") { received.record($0) }
        try await second.start()
        try await removed.wait { $0.count == 2 }
        #expect(received.values.map(\.summary.id) == ["a", "b"])
        #expect(received.values.first?.response?.body == Data("answer".utf8))
        #expect(received.values.allSatisfy { $0.summary.state == .delivered && $0.summary.tag == "t" })
        try await finish("d", tag: "t", in: second)
        try await removed.wait { $0.count == 3 }
        await second.stop()
        let third = try await open()
        #expect(try await third.statistics().completions == [])
        #expect(received.values.map(\.summary.id) == ["a", "b", "d"])
        await third.stop()
    }

    @Test func `a request is received again after a crash, but not within one process`() async throws {
        let received = Recorder<String>()
        let first = try await open(removes: false)
        try await first.onCompletion(tag: "t") { received.record($0.summary.id) }
        try await first.start()
        for id in ["a", "b"] { try await finish(id, tag: "t", in: first) }
        try await removed.wait { $0.count == 2 }
        #expect(received.values == ["a", "b"])
        await first.stop()
        let second = try await open()
        try await second.onCompletion(tag: "t") { received.record($0.summary.id) }
        try await second.start()
        try await removed.wait { $0.count == 4 }
        #expect(received.values == ["a", "b", "a", "b"])
        await second.stop()
    }

    @Test func `after a handler was removed, its requests wait, and nothing of its tag is kept`() async throws
    {
        let queue = try await open()
        let received = Recorder<String>()
        try await queue.onCompletion(tag: "t") { received.record($0.summary.id) }
        try await queue.start()
        try await finish("a", tag: "t", in: queue)
        try await removed.wait { $0.count == 1 }
        await queue.removeCompletionHandler(tag: "t")
        let task = await queue.tagHandlers["t"]?.task
        await task?.value
        #expect(await queue.tagHandlers.isEmpty)
        try await finish("b", tag: "t", in: queue)
        #expect(received.values == ["a"])
        #expect(try await queue.statistics().completions.map(\.count) == [1])
        try await queue.onCompletion(tag: "t") { received.record("again \($0.summary.id)") }
        try await removed.wait { $0.count == 2 }
        #expect(received.values == ["a", "again b"])
        await queue.stop()
    }

    @Test func `a handler that is removed during its call finishes the call`() async throws {
        let queue = try await open()
        let (began, release) = (Recorder<Void>(), ChangeSignal())
        let mayEnd = Lock(false)
        try await queue.onCompletion(tag: "t") { _ in
            began.record(())
            try await release.until { mayEnd.withLock { $0 } }
        }
        try await queue.start()
        try await finish("a", tag: "t", in: queue)
        try await began.wait { !$0.isEmpty }
        await queue.removeCompletionHandler(tag: "t")
        let task = try #require(await queue.tagHandlers["t"]?.task)
        mayEnd.withLock { $0 = true }
        release.post()
        await task.value
        #expect(removed.values.count == 1)
        #expect(await queue.tagHandlers.isEmpty)
        await queue.stop()
    }

    @Test func `a handler that throws receives the same request again`() async throws {
        let queue = try await open(backoff: .milliseconds(1))
        let calls = Recorder<String>()
        try await queue.onCompletion(tag: "t") { request in
            calls.record(request.summary.id)
            if calls.values.count < 3 { throw Refusal() }
        }
        try await queue.start()
        for id in ["a", "b"] { try await finish(id, tag: "t", in: queue) }
        try await removed.wait { $0.count == 2 }
        #expect(calls.values == ["a", "a", "a", "b"])
        await queue.stop()
    }

    @Test func `another handler is called at once, and statistics report the error of the earlier one`()
        async throws
    {
        let queue = try await open()
        let described = Recorder<Bool>()
        try await queue.onCompletion(tag: "t") { _ in throw NotedRefusal(described: described) }
        try await queue.start()
        try await finish("a", tag: "t", in: queue)
        // The queue describes the error when it records it. The call below begins after that.
        try await described.wait { !$0.isEmpty }
        let waiting = try await queue.statistics().completions.first
        #expect(waiting?.lastError == "the database is busy" && waiting?.hasHandler == true)
        let received = Recorder<String>()
        try await queue.onCompletion(tag: "t") { received.record($0.summary.id) }
        try await removed.wait { $0.count == 1 }
        #expect(received.values == ["a"])
        #expect(try await queue.statistics().completions == [])
        await queue.stop()
    }

    @Test func `a request that is retried after its handler threw is not delivered as dead any more`()
        async throws
    {
        let sender = FakeSender()
        let queue = try await open(sender)
        let calls = Recorder<QueuedRequest.State>()
        try await queue.onCompletion(tag: "t") {
            calls.record($0.summary.state)
            throw Refusal()
        }
        try await queue.start()
        var options = EnqueueOptions(id: "a")
        options.tag = "t"
        _ = try await queue.enqueue(
            QueueRequest(method: "POST", url: "https://example.com/"),
            options: options
        )
        sender.answer(await sender.nextAttempt(), .status(404))
        try await calls.wait { $0 == [.dead] }
        #expect(try await queue.retry(["a"]) == [.done(.pending)])
        sender.answer(await sender.nextAttempt(), .status(200))
        _ = try await queue.result(of: "a")
        let received = Recorder<QueuedRequest.State>()
        try await queue.onCompletion(tag: "t") { received.record($0.summary.state) }
        try await removed.wait { $0.count == 1 }
        #expect(received.values == [.delivered])
        await queue.stop()
    }

    @Test func `a handler that does not return delays only its own tag, and not the stop`() async throws {
        let queue = try await open()
        let stuck = Task.detached { await waitForCancellation() }
        let called = Recorder<String>()
        try await queue.onCompletion(tag: "stuck") { request in
            called.record(request.summary.id)
            await stuck.value
        }
        let received = Recorder<String>()
        try await queue.onCompletion(tag: "t") { received.record($0.summary.id) }
        try await queue.start()
        try await finish("a", tag: "stuck", in: queue)
        try await called.wait { $0 == ["a"] }
        for id in ["b", "c"] { try await finish(id, tag: "t", in: queue) }
        try await removed.wait { $0.count == 2 }
        #expect(received.values == ["b", "c"])
        #expect(try await queue.statistics().completions.map(\.tag) == ["stuck"])
        await queue.stop()
        stuck.cancel()
    }

    @Test func `without a handler, requests wait for one that is registered later`() async throws {
        let queue = try await open()
        let received = Recorder<String>()
        try await queue.onCompletion(tag: "t") { received.record($0.summary.id) }
        await queue.removeCompletionHandler(tag: "t")
        try await queue.start()
        for id in ["a", "b"] { try await finish(id, tag: "t", in: queue) }
        let waiting = try await queue.statistics().completions
        #expect(waiting.map(\.count) == [2] && waiting.map(\.hasHandler) == [false])
        try await queue.onCompletion(tag: "t") { received.record($0.summary.id) }
        try await removed.wait { $0.count == 2 }
        #expect(received.values == ["a", "b"])
        await queue.stop()
    }

    @Test(arguments: ["", "ä", String(repeating: "x", count: 256)])
    func `a tag that no request can have is refused`(tag: String) async throws {
        let queue = try await open()
        let error = try await #require(throws: QueueError.self) {
            try await queue.onCompletion(tag: tag) { _ in }
        }
        #expect(error.code == .invalidOption && error.message.hasPrefix("the tag"))
        #expect(throws: QueueError.self) { try new("a") { $0.tag = tag } }
        await queue.stop()
    }

    @Test func `a webhook is sent like any other request, and is repeated with its key`() async throws {
        let sender = FakeSender()
        let queue = try await open(sender, backoff: .milliseconds(1))
        try await queue.start()
        var options = EnqueueOptions(id: "a")
        options.onDone = Webhook(url: "https://hooks.example/done")
        _ = try await queue.enqueue(
            QueueRequest(method: "POST", url: "https://example.com/"),
            options: options
        )
        sender.answer(await sender.nextAttempt(), .status(200))
        let first = await sender.nextAttempt()
        sender.answer(first, .status(503))
        let second = await sender.nextAttempt()
        #expect(first.url == "https://hooks.example/done" && first.id == second.id)
        let keys = [first, second].map { attempt in
            attempt.headers.first { $0.name == "Idempotency-Key" }?.value
        }
        #expect(keys == [first.id, first.id])
        #expect(first.headers.contains { $0.name == "Content-Type" && $0.value == "application/json" })
        sender.answer(second, .status(204))
        let details = try #require(try await queue.result(of: second.id))
        #expect(details.summary.state == .delivered && details.webhookOf == "a")
        await queue.stop()
    }
}
