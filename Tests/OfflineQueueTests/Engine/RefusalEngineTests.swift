internal import Foundation
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

/// Servers that refuse requests for a moment, and callers that choose what a status means.
@Suite(.timeLimit(.minutes(5))) struct RefusalEngineTests {
    private let directory = TemporaryDirectory(marker: "refusals")
    private let changes = ChangeSignal()

    /// Opens a queue that confirms refusals after 20 ms.
    private func open(
        _ sender: FakeSender,
        _ adjust: (inout OfflineQueue.Configuration) -> Void = { _ in }
    ) async throws -> OfflineQueue {
        try await directory.openQueue(sender, signal: changes) {
            ($0.backoffBase, $0.backoffCap) = (.milliseconds(10), .milliseconds(20))
            ($0.confirmsRefusals, $0.retryRate) = (true, 1000)
            adjust(&$0)
        }
    }

    /// Enqueues requests in one transaction, so that their lane is not empty before the last one has ended.
    private func enqueue(_ count: Int, isFIFO: Bool, in queue: OfflineQueue) async throws {
        _ = try await queue.enqueue(
            (0..<count).map { number in
                (.post("\(number)"), EnqueueOptions(isFIFO: isFIFO, id: "\(number)"))
            }
        )
    }

    @Test(arguments: [false, true], [0, 5])
    func `a load balancer that refuses requests for a moment ends none of 30`(
        isFIFO: Bool,
        delivered: Int
    ) async throws {
        let sender = FakeSender()
        let queue = try await open(sender)
        try await enqueue(30, isFIFO: isFIFO, in: queue)
        for _ in 0..<delivered { sender.answer(await sender.nextAttempt(), .status(200)) }
        var refused: [Attempt] = []
        for _ in 0..<(isFIFO ? 1 : 8) { refused.append(await sender.nextAttempt()) }
        for attempt in refused { sender.answer(attempt, .status(404)) }
        let canary = await sender.nextAttempt()
        #expect(
            sender.attempts.count == delivered + refused.count + 1,
            "the lane sends one request to confirm the refusals"
        )
        sender.answer(canary, .status(200))
        for _ in 1..<(30 - delivered) { sender.answer(await sender.nextAttempt(), .status(200)) }
        try await changes.until(queue) { $0[.delivered] == 30 }
        var urls = sender.attempts.map(\.url)
        urls.removeSubrange(delivered..<(delivered + refused.count))
        #expect(!isFIFO || urls == (0..<30).map { "https://example.com/\($0)" })
        await queue.stop()
    }

    @Test func `invalid requests among others of a parallel lane end after at most two attempts`()
        async throws
    {
        let sender = FakeSender { $0.id.hasSuffix("7") ? .status(404) : .status(200) }
        let queue = try await open(sender)
        try await enqueue(100, isFIFO: false, in: queue)
        try await changes.until(queue) { $0[.delivered] == 90 && $0[.dead] == 10 }
        let attempts = Dictionary(grouping: sender.attempts, by: \.id).mapValues(\.count)
        #expect(attempts.values.max() == 2 && attempts["0"] == 1)
        await queue.stop()
    }

    @Test func `a single invalid request ends at its second refusal`() async throws {
        let sender = FakeSender { $0.id == "1" ? .status(404) : .status(200) }
        let queue = try await open(sender)
        try await enqueue(3, isFIFO: true, in: queue)
        try await changes.until(queue) { $0[.delivered] == 2 && $0[.dead] == 1 }
        #expect(sender.attempts.map(\.id) == ["0", "1", "1", "2"])
        await queue.stop()
    }

    @Test func `a confirmed refusal ends the other requests of the lane at their first attempt`() async throws
    {
        let sender = FakeSender { _ in .status(404) }
        let queue = try await open(sender)
        try await enqueue(10, isFIFO: true, in: queue)
        try await changes.until(queue) { $0[.dead] == 10 }
        let ids = sender.attempts.map(\.id)
        #expect(ids == ["0"] + (0..<10).map { "\($0)" })
        let request = try #require(try await queue.request("0"))
        #expect(request.summary.attempts == 2 && request.summary.lastError == "HTTP 404")
        #expect(request.attempts.first?.error?.hasPrefix("HTTP 404; another attempt must confirm it") == true)
        await queue.stop()
    }

    private static let unconfirmed: [@Sendable (inout EnqueueOptions) -> Void] = [
        { $0.isAtMostOnce = true }, { $0.maximumAttempts = 1 }, { $0.statusRules.dead = [404...404] },
    ]

    @Test(arguments: unconfirmed.indices)
    func `a request that must not be sent again, or whose caller chose the status, ends at its first refusal`(
        index: Int
    ) async throws {
        let sender = FakeSender { _ in .status(404) }
        let queue = try await open(sender)
        try await queue.enqueue(id: "a", Self.unconfirmed[index])
        let result = try #require(try await queue.result(of: "a"))
        #expect(result.summary.state == .dead && result.summary.lastError == "HTTP 404")
        #expect(result.summary.attempts == 1 && sender.attempts.count == 1)
        await queue.stop()
    }

    @Test(arguments: [404, 200])
    func `send waits for the attempt that confirms a refusal`(status: Int) async throws {
        let sender = FakeSender()
        let queue = try await open(sender)
        async let result = queue.send(.post(), options: EnqueueOptions(id: "a"))
        sender.answer(await sender.nextAttempt(), .status(404))
        sender.answer(await sender.nextAttempt(), .status(status))
        let expected =
            status == 200
            ? SendResult.delivered(id: "a", status: 200, body: Data()) : .dead(id: "a", reason: "HTTP 404")
        #expect(try await result == expected)
        await queue.stop()
    }

    @Test func `send does not wait for a confirmation that follows much later`() async throws {
        let queue = try await open(FakeSender { _ in .status(404) }) {
            ($0.backoffBase, $0.backoffCap) = (.seconds(600), .seconds(7200))
        }
        guard
            case .queued("a", .attemptFailed(let words)) = try await queue.send(
                .post(),
                options: EnqueueOptions(id: "a")
            )
        else {
            Issue.record("the refusal counts")
            return
        }
        #expect(words.hasPrefix("HTTP 404; another attempt must confirm it"))
        await queue.stop()
    }

    // MARK: The caller's choice

    @Test func `a status that a request, its lane, its host or the queue lists is retried`() async throws {
        let sender = FakeSender()
        let queue = try await open(sender) { configuration in
            configuration.confirmsRefusals = false
            configuration.statusRules.retry = [410...410]
            configuration.hostStatusRules = ["EXAMPLE.com": StatusRules(retry: [411...411])]
            configuration.laneStatusRules = ["l": StatusRules(retry: [412...412])]
        }
        try await queue.enqueue(id: "a") {
            ($0.lane, $0.statusRules.retry) = ("l", [413...413])
        }
        for status in 410...413 { sender.answer(await sender.nextAttempt(), .status(status)) }
        sender.answer(await sender.nextAttempt(), .status(414))
        let result = try #require(try await queue.result(of: "a"))
        #expect(result.summary.state == .dead && result.attempts.map(\.status) == [410, 411, 412, 413, 414])
        #expect(result.options.statusRules == StatusRules(retry: [413...413]))
        await queue.stop()
    }

    @Test func `the most specific rules decide, and a change applies to the next response`() async throws {
        let sender = FakeSender()
        let queue = try await open(sender) { configuration in
            configuration.statusRules.retry = [500...599, 404...404]
            configuration.laneStatusRules = ["l": StatusRules(dead: [500...599])]
        }
        for id in ["a", "b"] { try await queue.enqueue(id: id) { $0.lane = id == "a" ? "l" : nil } }
        var attempts: [String: Attempt] = [:]
        for _ in 0..<2 {
            let attempt = await sender.nextAttempt()
            attempts[attempt.id] = attempt
        }
        sender.answer(try #require(attempts["a"]), .status(503))
        #expect(try await queue.result(of: "a")?.summary.lastError == "HTTP 503")
        var configuration = await queue.configuration
        configuration.statusRules = StatusRules(dead: [404...404])
        await queue.use(configuration)
        sender.answer(try #require(attempts["b"]), .status(404))
        let ended = try #require(try await queue.result(of: "b")).summary
        #expect(ended.state == .dead && ended.attempts == 1)
        await queue.stop()
    }
}
