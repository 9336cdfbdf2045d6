internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// How the engine uses its store: waiting calls, expiry, leases and bodies.
@Suite(.timeLimit(.minutes(5))) struct EngineTests {
    let directory = TemporaryDirectory(marker: "engine")
    let changes = ChangeSignal()

    func options(_ id: String, _ adjust: (inout EnqueueOptions) -> Void = { _ in }) -> EnqueueOptions {
        var options = EnqueueOptions(lane: id, id: id)
        adjust(&options)
        return options
    }

    // MARK: Waiting for the end

    @Test func `result waits until a request has finished`() async throws {
        let sender = FakeSender()
        let queue = try await directory.openQueue(sender, signal: changes)
        _ = try await queue.enqueue(.post(), options: options("a"))
        let attempt = await sender.nextAttempt()
        async let result = queue.result(of: "a")
        #expect(try await queue.result(of: "a", within: .zero)?.summary.state == .inflight)
        sender.answer(attempt, .status(201, [("ETag", "b"), ("Set-Cookie", "s=1")], body: "made"))
        let details = try #require(try await result)
        #expect(details.summary.state == .delivered && details.summary.status == 201)
        #expect(details.response?.body == Data("made".utf8))
        #expect(details.response?.headers == [.init(name: "ETag", value: "b")])
        #expect(try await queue.result(of: "nobody") == nil)
        await queue.stop()
    }

    @Test(arguments: ["cancelled", "superseded", "dead", "stopped"])
    func `waiting calls return for every final state`(how: String) async throws {
        let queue = try await directory.openQueue(gate: FakeGate(.notReachable), signal: changes)
        _ = try await queue.enqueue(
            .post(),
            options: options("a") {
                $0.replaceKey = "k"
                if how == "dead" { $0.timeToLive = .milliseconds(300) }
            }
        )
        async let result = queue.result(of: "a")
        switch how {
        case "cancelled": #expect(try await queue.cancel(["a"]) == [.done(.cancelled)])
        case "superseded":
            var next = options("b") { $0.replaceKey = "k" }
            next.lane = "a"
            _ = try await queue.enqueue(.post(), options: next)
        case "stopped": await queue.stop()
        default: break
        }
        let state = (try? await result)?.summary.state
        #expect(state?.rawValue == (how == "stopped" ? nil : how) || how == "stopped" && state == .pending)
        await queue.stop()
    }

    @Test func `a request with a short time to live is given up on time without a call`() async throws {
        let queue = try await directory.openQueue(gate: FakeGate(.notReachable), signal: changes)
        _ = try await queue.enqueue(.post(), options: options("a") { $0.timeToLive = .milliseconds(100) })
        #expect(try await queue.result(of: "a")?.summary.state == .dead)
        await queue.stop()
    }

    // MARK: Waiting for capacity

    @Test func `a call waits until the queue has capacity`() async throws {
        let sender = FakeSender()
        let queue = try await directory.openQueue(sender, signal: changes) {
            $0.limits.requests = 1
            $0.limits.laneShare = 1
        }
        _ = try await queue.enqueue(.post(), options: options("a"))
        let attempt = await sender.nextAttempt()
        let blocked = options("b") { $0.whenFull = .block }
        let call = Task { try await queue.enqueue(.post(), options: blocked) }
        let given = Task {
            try await queue.enqueue(.post(), options: options("c") { $0.whenFull = .block })
        }
        given.cancel()
        await #expect(throws: CancellationError.self) { try await given.value }
        sender.answer(attempt, .status(200))
        #expect(try await call.value.outcome == .accepted)
        await queue.stop()
    }

    @Test func `a call does not wait for capacity that can never be free`() async throws {
        let queue = try await directory.openQueue(signal: changes, isStarted: false) {
            $0.limits.requests = 1
            $0.limits.laneShare = 1
        }
        let blocking = { (id: String) in options(id) { $0.whenFull = .block } }
        let error = await #expect(throws: QueueError.self) {
            try await queue.enqueue([(.post(), blocking("a")), (.post(), blocking("b"))])
        }
        #expect(error?.code == .queueFull)
        await queue.stop()
    }

    @Test func `a call that waits for capacity ends when the queue stops`() async throws {
        var configuration = OfflineQueue.Configuration(directory: directory.path)
        configuration.limits.requests = 1
        configuration.limits.laneShare = 1
        configuration.limits.diskReserve = 0
        var settings = StoreSettings()
        settings.limits = configuration.limits
        let store = PageRecordingStore(
            inner: try await SQLiteQueueStore(directory: directory.path, settings: settings)
        )
        let queue = OfflineQueue(
            configuration: configuration,
            store: store,
            sender: FakeSender(),
            gate: FakeGate()
        )
        _ = try await queue.enqueue(.post(), options: options("a"))
        let call = Task {
            try await queue.enqueue(.post(), options: options("b") { $0.whenFull = .block })
        }
        try await store.pages.wait { !$0.isEmpty }
        await queue.stop()
        let error = await #expect(throws: QueueError.self) { try await call.value }
        #expect(error?.code == .stopped)
    }

    // MARK: First results

    @Test func `send returns why a request is not tried`() async throws {
        let queue = try await directory.openQueue(FakeSender { _ in .status(500) }, signal: changes) {
            $0.limits.requests = 4
            $0.limits.laneShare = 1
        }
        func send(_ id: String, _ adjust: (inout EnqueueOptions) -> Void = { _ in }) async throws
            -> SendResult
        {
            try await queue.send(.post(), options: options(id, adjust))
        }
        let later = Date().addingTimeInterval(3600)
        #expect(try await send("later") { $0.notBefore = later } == .queued(id: "later", reason: .scheduled))
        #expect(
            try await send("after") { $0.dependencies = ["later"] } == .queued(id: "after", reason: .blocked)
        )
        try await queue.pause()
        #expect(try await send("paused") == .queued(id: "paused", reason: .paused))
        #expect(try await send("known") == .queued(id: "known", reason: .paused))
        #expect(try await send("dropped") { $0.whenFull = .dropNewest } == .dropped(id: "dropped"))
        #expect(try await send("known") == .queued(id: "known", reason: .alreadyQueued))
        await queue.stop()
    }

    @Test func `send to a queue that is not started stores the request and says so`() async throws {
        let queue = try await directory.openQueue(signal: changes, isStarted: false)
        #expect(try await queue.send(.post(), options: options("a")) == .queued(id: "a", reason: .stopped))
        #expect(try await queue.counts[.pending] == 1)
        await queue.stop()
    }

    @Test func `resumed requests are sent`() async throws {
        let sender = FakeSender { _ in .status(200) }
        let queue = try await directory.openQueue(sender, signal: changes)
        try await queue.pause()
        _ = try await queue.enqueue(.post(), options: options("known"))
        #expect(try await queue.pause(host: "EXAMPLE.com") == 1)
        _ = try await queue.enqueue(.post(), options: options("known"))
        try await queue.resume()
        try await changes.until(queue) { $0[.delivered] == 1 }
        await queue.stop()
    }

    @Test func `pausing or resuming without a matching lane is refused`() async throws {
        let queue = try await directory.openQueue(signal: changes, isStarted: false)
        _ = try await queue.enqueue(.post(), options: options("a"))
        let calls: [@Sendable (String?, String?) async throws -> Int] = [
            { try await queue.pause(host: $0, lane: $1) }, { try await queue.resume(host: $0, lane: $1) },
        ]
        for (host, lane, words) in [
            ("unknown", nil, "the queue has no lane to the host `unknown`"),
            ("example.com", "l", "the queue has no lane to the host `example.com` with the label `l`"),
            (nil, "l", "the queue has no lane with the label `l`"),
        ] {
            for call in calls {
                let error = try await #require(throws: QueueError.self) { _ = try await call(host, lane) }
                #expect(error.code == .unknownLane && error.message == words)
            }
        }
        #expect(try await queue.statistics().pausedLanes.isEmpty)
        await queue.stop()
    }
}

/// A store that signals when it has returned a page of a list. A call of `enqueue` reads a page before it waits for
/// capacity, so the signal shows that it is about to wait.
private struct PageRecordingStore: WrappedStore {
    let inner: any QueueStore
    let pages = Recorder<RequestPage>()

    func page(_ query: RequestQuery) async throws -> RequestPage {
        let page = try await inner.page(query)
        pages.record(page)
        return page
    }
}
