internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

@Suite(.timeLimit(.minutes(5))) struct QueueTests {
    private let directory = TemporaryDirectory()
    private let changes = ChangeSignal()

    /// Opens a queue. The default backoff is one hour, so that no request is retried during a test.
    private func open(
        _ sender: FakeSender,
        gate: FakeGate = FakeGate(),
        backoff: Duration = .seconds(3600),
        isStarted: Bool = true
    ) async throws -> OfflineQueue {
        try await directory.openQueue(sender, gate: gate, signal: changes, isStarted: isStarted) {
            ($0.backoffBase, $0.backoffCap) = (backoff, backoff * 2)
        }
    }

    private let inOrder = EnqueueOptions(isFIFO: true)

    @Test func `an enqueued request is delivered and listed`() async throws {
        let sender = FakeSender { _ in .status(201) }
        let queue = try await open(sender)
        let receipt = try await queue.enqueue(.post("a"))
        #expect(receipt.isNew)
        try await changes.until(queue) { $0[.delivered] == 1 }
        let listed = try await queue.list().requests[0]
        #expect(listed.id == receipt.id && listed.state == .delivered && listed.status == 201)
        #expect(listed.attempts == 1)
        await queue.stop()
    }

    @Test func `requests accepted before a restart are delivered after it`() async throws {
        let first = try await open(FakeSender { _ in .unreachable })
        for index in 0..<20 { _ = try await first.enqueue(.post("\(index)")) }
        await first.stop()
        let sender = FakeSender { _ in .status(200) }
        let second = try await open(sender)
        try await changes.until(second) { $0[.delivered] == 20 }
        #expect(Set(sender.attempts.map(\.url)).count == 20)
        await second.stop()
    }

    @Test func `a request in flight when the queue stopped is sent again with its key`() async throws {
        let sender = FakeSender()
        let first = try await open(sender)
        _ = try await first.enqueue(.post())
        let attempt = await sender.nextAttempt()
        await first.stop()
        let second = try await open(sender)
        let again = await sender.nextAttempt()
        #expect(again.id == attempt.id)
        #expect(key(again) == key(attempt) && key(again) != nil)
        sender.answer(again, .status(200))
        try await changes.until(second) { $0[.delivered] == 1 }
        await second.stop()
    }

    @Test func `an attempt on a lost path is repeated immediately and does not count`()
        async throws
    {
        let sender = FakeSender()
        let gate = FakeGate()
        let queue = try await open(sender, gate: gate)
        async let result = queue.send(.post(), options: EnqueueOptions(isFIFO: true, id: "a"))
        let attempt = await sender.nextAttempt()
        gate.turn(.notReachable)
        gate.turn(.reachable(generation: 2))
        let again = await sender.nextAttempt()
        #expect(key(again) == key(attempt))
        sender.answer(again, .status(200))
        #expect(try await result == .delivered(id: "a", status: 200, body: Data()))
        #expect(try await queue.list().requests.first?.attempts == 1)
        await queue.stop()
    }

    private func key(_ attempt: Attempt) -> String? {
        attempt.headers.first { $0.name == "Idempotency-Key" }?.value
    }

    @Test func `send returns the response`() async throws {
        let queue = try await open(FakeSender { _ in .status(200, body: "hello") })
        let result = try await queue.send(.post(), options: EnqueueOptions(id: "a"))
        #expect(result == .delivered(id: "a", status: 200, body: Data("hello".utf8)))
        await queue.stop()
    }

    @Test func `send returns the result of an attempt that ended before the store confirmed the request`()
        async throws
    {
        let inner = ObservedStore(
            inner: try await SQLiteQueueStore(directory: directory.path),
            signal: changes
        )
        let other = QueueRequest.post("other")
        let (wakes, wake) = AsyncStream.makeStream(of: Void.self)
        let store = DelayedStore(inner: inner, id: "late") { [changes] in
            wake.yield()
            try await changes.until { try await inner.counts()[.delivered] == 2 }
        }
        let queue = OfflineQueue(
            configuration: OfflineQueue.Configuration(withLongTimeouts: directory.path),
            store: store,
            sender: FakeSender { _ in .status(200) },
            gate: FakeGate()
        )
        try await queue.start()
        async let result = queue.send(.post(), options: EnqueueOptions(id: "late"))
        // Another request of the lane causes a claim, which takes both requests.
        for await _ in wakes.prefix(1) { _ = try await queue.enqueue(other) }
        #expect(try await result == .delivered(id: "late", status: 200, body: Data()))
        await queue.stop()
    }

    @Test func `a response is stored up to 64 KiB`() async throws {
        let queue = try await open(
            FakeSender { _ in .status(200, body: String(repeating: "x", count: 70_000)) }
        )
        guard case .delivered(_, _, let body) = try await queue.send(.post()) else {
            Issue.record("not delivered")
            return
        }
        #expect(body.count == 65_536)
        await queue.stop()
    }

    @Test func `send returns the reason for waiting`() async throws {
        let sender = FakeSender { attempt in
            switch attempt.id {
            case "dead": .status(404)
            case "auth": .status(401)
            default: .status(500)
            }
        }
        let queue = try await open(sender)
        func send(_ id: String) async throws -> SendResult {
            try await queue.send(.post(), options: EnqueueOptions(lane: id, id: id))
        }
        #expect(try await send("dead") == .dead(id: "dead", reason: "HTTP 404"))
        #expect(try await send("auth") == .queued(id: "auth", reason: .held(.auth)))
        #expect(try await send("fail") == .queued(id: "fail", reason: .attemptFailed("HTTP 500")))
        #expect(try await send("fail") == .queued(id: "fail", reason: .alreadyQueued))
        #expect(try await send("dead") == .dead(id: "dead", reason: "HTTP 404"))
        await queue.stop()
    }

    @Test func `send does not try a host that is known to be unreachable`() async throws {
        let sender = FakeSender { _ in .refused }
        let queue = try await open(sender, gate: FakeGate(.notReachable))
        func send(_ id: String) async throws -> SendResult {
            try await queue.send(.post(), options: EnqueueOptions(lane: id, id: id))
        }
        for id in ["a", "b", "c"] {
            #expect(try await send(id) == .queued(id: id, reason: .noPath))
        }
        #expect(sender.attempts.isEmpty)
        await queue.stop()
    }

    @Test func `send in a FIFO lane never overtakes earlier requests`() async throws {
        let sender = FakeSender { _ in .refused }
        let queue = try await open(sender)
        _ = try await queue.send(.post("1"), options: inOrder)
        let options = EnqueueOptions(isFIFO: true, id: "second")
        let second = try await queue.send(.post("2"), options: options)
        #expect(second == .queued(id: "second", reason: .behindEarlier))
        #expect(Set(sender.attempts.map(\.url)) == ["https://example.com/1"])
        await queue.stop()
    }

    @Test func `cancelling a send leaves its request in the queue`() async throws {
        let sender = FakeSender()
        let queue = try await open(sender)
        let task = Task { try await queue.send(.post(), options: EnqueueOptions(id: "a")) }
        let attempt = await sender.nextAttempt()
        task.cancel()
        #expect(try await task.value == .queued(id: "a", reason: .cancelled))
        sender.answer(attempt, .status(200))
        try await changes.until(queue) { $0[.delivered] == 1 }
        await queue.stop()
    }

    @Test func `a FIFO lane keeps its order under failures and restarts`() async throws {
        let seen = Delivered()
        let sender = FakeSender { attempt in
            // Only every third attempt succeeds.
            guard seen.tick() % 3 == 0 else { return .reset }
            seen.append(attempt.url)
            return .status(200)
        }
        var queue = try await open(sender, backoff: .milliseconds(1))
        for index in 0..<12 { _ = try await queue.enqueue(.post("\(index)"), options: inOrder) }
        try await changes.until(queue) { $0[.delivered] >= 4 }
        await queue.stop()
        queue = try await open(sender, backoff: .milliseconds(1))
        try await changes.until(queue) { $0[.delivered] == 12 }
        #expect(seen.urls == (0..<12).map { "https://example.com/\($0)" })
        await queue.stop()
    }

    @Test func `attempts while offline do not count`() async throws {
        let sender = FakeSender { _ in .unreachable }
        let queue = try await open(sender, backoff: .milliseconds(1))
        _ = try await queue.enqueue(.post())
        for _ in 0..<5 { _ = await sender.nextAttempt() }
        await queue.stop()
        let reopened = try await open(sender, isStarted: false)
        let listed = try await reopened.list().requests[0]
        #expect(listed.attempts == 0)
        #expect(listed.deferrals >= 4)
        #expect(listed.state == .pending)
        await reopened.stop()
    }

    @Test func `a path that is found ends the backoff after a name could not be looked up`() async throws {
        let sender = FakeSender()
        let gate = FakeGate(.unknown)
        let queue = try await open(sender, gate: gate)
        _ = try await queue.enqueue(.post())
        sender.answer(await sender.nextAttempt(), .unresolved)
        try await changes.until(queue) { $0[.pending] == 1 }
        gate.turn(.reachable(generation: 2))
        sender.answer(await sender.nextAttempt(), .status(200))
        try await changes.until(queue) { $0[.delivered] == 1 }
        #expect(sender.pathChanges == 0, "no other path was known")
        await queue.stop()
    }

    @Test func `a flush tries waiting and held requests`() async throws {
        let sender = FakeSender()
        let queue = try await open(sender)
        _ = try await queue.enqueue(.post("a"), options: EnqueueOptions(lane: "a"))
        sender.answer(await sender.nextAttempt(), .status(503, [("Retry-After", "3600")]))
        _ = try await queue.enqueue(.post("b"), options: EnqueueOptions(lane: "b"))
        sender.answer(await sender.nextAttempt(), .status(401))
        try await changes.until(queue) { $0[.pending] == 1 && $0[.held] == 1 }
        #expect(try await queue.flush().map(\.closure.status) == [503])
        for _ in 0..<2 { sender.answer(await sender.nextAttempt(), .status(200)) }
        try await changes.until(queue) { $0[.delivered] == 2 }
        await queue.stop()
    }

    @Test func `a flush of some lanes does not try the requests of the others`() async throws {
        let sender = FakeSender()
        let queue = try await open(sender)
        for lane in ["a", "b"] {
            _ = try await queue.enqueue(.post(lane), options: EnqueueOptions(lane: lane))
            sender.answer(await sender.nextAttempt(), .status(503, [("Retry-After", "3600")]))
        }
        try await changes.until(queue) { $0[.pending] == 2 }
        #expect(try await queue.flush(lane: "b").map(\.label) == ["b"])
        sender.answer(await sender.nextAttempt(), .status(200))
        try await changes.until(queue) { $0[.delivered] == 1 }
        #expect(try await queue.statistics().closedLanes.map(\.label) == ["a"])
        let error = await #expect(throws: QueueError.self) { try await queue.flush(host: "unknown.example") }
        #expect(error?.code == .unknownLane)
        await queue.stop()
    }

    @Test func `Retry-After delays the lane's other requests`() async throws {
        let sender = FakeSender()
        let queue = try await open(sender)
        _ = try await queue.enqueue(.post("a"))
        sender.answer(await sender.nextAttempt(), .status(429, [("Retry-After", "60")]))
        try await changes.until(queue) { $0[.pending] == 1 }
        let result = try await queue.send(.post("b"), options: EnqueueOptions(id: "b"))
        #expect(result == .queued(id: "b", reason: .laneClosed))
        #expect(sender.attempts.count == 1)
        await queue.stop()
    }

    @Test func `many requests of many lanes arrive once each`() async throws {
        let sender = FakeSender { _ in .status(200) }
        let queue = try await open(sender)
        try await withThrowingTaskGroup { group in
            for index in 0..<300 {
                group.addTask {
                    let request = QueueRequest(method: "POST", url: "http://h\(index % 7).example/\(index)")
                    _ = try await queue.enqueue(request, options: EnqueueOptions(isFIFO: index % 2 == 0))
                }
            }
            try await group.waitForAll()
        }
        try await changes.until(queue) { $0[.delivered] == 300 }
        #expect(sender.attempts.count == 300)
        #expect(Set(sender.attempts.map(\.url)).count == 300)
        await queue.stop()
    }

    @Test func `a stop ends attempts, whose requests wait again or are held if they must not be sent twice`()
        async throws
    {
        let sender = FakeSender()
        let queue = try await open(sender)
        try await queue.enqueue(id: "a")
        try await queue.enqueue(id: "once") { $0.isAtMostOnce = true }
        for _ in 0..<2 { _ = await sender.nextAttempt() }
        await queue.stop()
        let stored = try await open(FakeSender(), isStarted: false)
        let ended = try #require(try await stored.request("a")).summary
        #expect(ended.state == .pending && ended.attempts == 0 && ended.deferrals == 1)
        #expect(ended.lastError == "the queue stopped during the attempt")
        #expect(try await stored.request("once")?.summary.holdReason == .ambiguous)
        #expect(try await stored.retry(["a"]) == [.done(.pending)])
        await stored.stop()
    }

    @Test func `a stopped queue refuses calls and releases its directory`() async throws {
        let queue = try await open(FakeSender())
        await queue.stop()
        let error = try await #require(throws: QueueError.self) { _ = try await queue.enqueue(.post()) }
        #expect(error.code == .stopped)
        try await open(FakeSender()).stop()
    }

    @Test func `a first attempt that uses up the allowed attempts is reported as dead`() async throws {
        let queue = try await open(FakeSender { _ in .refused })
        var options = EnqueueOptions()
        options.maximumAttempts = 1
        let result = try await queue.send(.post(), options: options)
        guard case .dead = result else {
            Issue.record("\(result)")
            return await queue.stop()
        }
        await queue.stop()
    }

    @Test(arguments: [-Double.infinity, -1e300, .nan, .infinity])
    func `extreme dates are stored or refused without a crash`(seconds: Double) async throws {
        let queue = try await open(FakeSender(), isStarted: false)
        var options = EnqueueOptions()
        options.notBefore = Date(timeIntervalSince1970: seconds)
        _ = try? await queue.enqueue(.post(), options: options)
        (options.notBefore, options.deadline) = (nil, Date(timeIntervalSince1970: seconds))
        _ = try? await queue.enqueue(.post(), options: options)
        await queue.stop()
    }
}

/// The URLs of the requests that arrived at a fake sender, in order.
final class Delivered: Sendable {
    private let state = Lock<(ticks: Int, urls: [String])>((0, []))

    var urls: [String] { state.withLock { $0.urls } }

    func tick() -> Int {
        state.withLock { state in
            state.ticks += 1
            return state.ticks
        }
    }

    func append(_ url: String) { state.withLock { $0.urls.append(url) } }
}
