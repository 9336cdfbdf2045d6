internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability
internal import OfflineQueue
internal import Testing

/// The limits that spare servers, in a queue that sends.
@Suite(.timeLimit(.minutes(5))) struct PacingEngineTests {
    private let directory = TemporaryDirectory()
    private let changes = ChangeSignal()

    private func open(
        _ sender: FakeSender,
        gate: FakeGate = FakeGate(),
        _ adjust: (inout OfflineQueue.Configuration) -> Void = { _ in }
    ) async throws -> OfflineQueue {
        try await directory.openQueue(sender, gate: gate, signal: changes) {
            ($0.backoffBase, $0.backoffCap) = (Backoff.defaultBase, Backoff.defaultCap)
            adjust(&$0)
        }
    }

    @Test func `a request that the spread delays reports so, and a flush sends it`() async throws {
        let sender = FakeSender { _ in .status(200) }
        let queue = try await open(sender) { $0.reconnectSpread = .seconds(366 * 86_400) }
        let options = EnqueueOptions(id: "a")
        #expect(try await queue.send(.post(), options: options) == .queued(id: "a", reason: .paced))
        #expect(try await queue.list().requests.map(\.waitReason) == [.paced])
        #expect(sender.attempts.isEmpty)
        try await queue.flush()
        try await changes.until(queue) { $0[.delivered] == 1 }
        await queue.stop()
    }

    @Test func `after an outage one request is sent, and the others after its success`() async throws {
        let (sender, gate) = (FakeSender(), FakeGate(.notReachable))
        let queue = try await open(sender, gate: gate)
        // Proves that the queue has noticed the outage: the first state of a gate does not indicate one.
        let unsent = try await queue.send(.post("0"), options: EnqueueOptions(id: "0"))
        #expect(unsent == .queued(id: "0", reason: .noPath))
        for index in 1..<5 { _ = try await queue.enqueue(.post("\(index)")) }
        gate.turn(.reachable(generation: 1, route: 1))
        let canary = await sender.nextAttempt()
        #expect(sender.attempts.count == 1)
        sender.answer(canary, .status(200))
        var others: [Attempt] = []
        while others.count < 4 { others.append(await sender.nextAttempt()) }
        for attempt in others { sender.answer(attempt, .status(200)) }
        try await changes.until(queue) { $0[.delivered] == 5 }
        await queue.stop()
    }

    @Test func `the rates of the configuration limit the requests to a host`() async throws {
        let sender = FakeSender { _ in .status(200) }
        let limit = try RateLimit(1.0 / 3600, to: "example.com", burst: 1)
        let queue = try await open(sender) { $0.rates = [limit] }
        guard case .delivered = try await queue.send(.post("a")) else {
            Issue.record("the first request was not sent")
            return
        }
        let second = try await queue.send(.post("b"), options: EnqueueOptions(id: "b"))
        #expect(second == .queued(id: "b", reason: .rateLimited))
        #expect(sender.attempts.count == 1)
        await queue.stop()
    }

    @Test func `send waits for a slot that another request's end frees`() async throws {
        let sender = FakeSender()
        let queue = try await open(sender) { $0.inflight = 1 }
        _ = try await queue.enqueue(.post("a"))
        let first = await sender.nextAttempt()
        async let sent = queue.send(.post("b"), options: EnqueueOptions(id: "b"))
        try await changes.until(queue) { $0[.pending] == 1 }
        sender.answer(first, .status(200))
        sender.answer(await sender.nextAttempt(), .status(201))
        #expect(try await sent == .delivered(id: "b", status: 201, body: Data()))
        await queue.stop()
    }

    /// With one slot, the order of the attempts shows the weights.
    @Test func `the weights of the configuration divide the slots between hosts`() async throws {
        let sender = FakeSender()
        let queue = try await open(sender) {
            ($0.inflight, $0.hostWeights) = (1, ["heavy.example": 3])
        }
        func enqueue(_ host: String, _ number: Int) async throws {
            let url = "https://\(host)/\(number)"
            _ = try await queue.enqueue(QueueRequest(method: "POST", url: url))
        }
        // The first request occupies the slot until all others wait.
        try await enqueue("first.example", 0)
        let first = await sender.nextAttempt()
        for number in 0..<12 {
            try await enqueue("light.example", number)
            try await enqueue("heavy.example", number)
        }
        sender.answer(first, .status(200))
        var hosts: [String] = []
        for _ in 0..<12 {
            let attempt = await sender.nextAttempt()
            hosts.append(attempt.url.contains("heavy") ? "heavy" : "light")
            sender.answer(attempt, .status(200))
        }
        let heavy = hosts.count { $0 == "heavy" }
        #expect((8...10).contains(heavy), "\(hosts)")
        await queue.stop()
    }

    private static let wired = PathInterface(kind: .ethernet, isMetered: false)
    private static let mobile = PathInterface(kind: .cellular, isMetered: true)

    private func up(_ generation: UInt64, _ interface: PathInterface) -> GateState {
        .reachable(generation: generation, route: generation, interface: interface)
    }

    @Test func `a request for an unmetered connection waits for one, and the reason is visible`() async throws
    {
        let (sender, gate) = (FakeSender { _ in .status(200) }, FakeGate(up(1, Self.mobile)))
        let queue = try await open(sender, gate: gate)
        var options = EnqueueOptions(id: "a")
        options.constraints.isUnmetered = true
        let reason = QueuedReason.constraint(.unmetered)
        #expect(try await queue.send(.post(), options: options) == .queued(id: "a", reason: reason))
        #expect(try await queue.list().requests.map(\.waitReason) == [reason])
        #expect("\(reason)" == "waiting for an unmetered connection")
        _ = try await queue.send(.post("b"))
        #expect(sender.attempts.count == 1, "a request without constraints is sent")
        gate.turn(up(2, Self.wired))
        try await changes.until(queue) { $0[.delivered] == 2 }
        #expect(try await queue.request("a")?.options.constraints == options.constraints)
        await queue.stop()
    }

    @Test func `an attempt that loses its unmetered connection ends uncounted, and is repeated later`()
        async throws
    {
        let (sender, gate) = (FakeSender(), FakeGate(up(1, Self.wired)))
        let queue = try await open(sender, gate: gate)
        var options = EnqueueOptions(id: "a")
        options.constraints.isUnmetered = true
        _ = try await queue.enqueue(.post(), options: options)
        _ = await sender.nextAttempt()
        gate.turn(up(2, Self.mobile))
        try await changes.until(queue) { $0[.pending] == 1 }
        let waiting = try #require(try await queue.request("a")).summary
        #expect(waiting.attempts == 0 && waiting.waitReason == .constraint(.unmetered))
        gate.turn(up(3, Self.wired))
        sender.answer(await sender.nextAttempt(), .status(200))
        try await changes.until(queue) { $0[.delivered] == 1 }
        await queue.stop()
    }

    @Test func `retries within the budget are not delayed`() async throws {
        let failed = Lock(Set<String>())
        // Each fifth request fails once: 12 retries, where 22 are permitted within 10 s.
        let sender = FakeSender { attempt in
            let isFifth = attempt.url.hasSuffix("0") || attempt.url.hasSuffix("5")
            let isFirst = failed.withLock { $0.insert(attempt.id).inserted }
            return isFifth && isFirst ? .status(500) : .status(200)
        }
        let queue = try await open(sender) {
            $0.backoffBase = .milliseconds(1)
            $0.backoffCap = .milliseconds(2)
        }
        for index in 0..<60 { _ = try await queue.enqueue(.post("\(index)")) }
        try await changes.until(queue) { $0[.delivered] == 60 }
        #expect(sender.attempts.count == 72)
        await queue.stop()
    }
}
