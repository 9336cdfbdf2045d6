internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// Requests that wait for a backoff of an hour, and what ends the wait earlier.
@Suite(.timeLimit(.minutes(5))) struct ServerResponseEngineTests {
    private let directory = TemporaryDirectory(marker: "responses")
    private let changes = ChangeSignal()

    /// Returns a queue that is sending the requests `a` and `b`, and their attempts by id.
    private func sending(
        _ sender: FakeSender,
        lanes: [String] = ["first", "second"],
        _ adjust: (inout OfflineQueue.Configuration) -> Void = { _ in }
    ) async throws -> (OfflineQueue, [String: Attempt]) {
        let queue = try await directory.openQueue(sender, signal: changes, adjust)
        for (id, lane) in zip(["a", "b"], lanes) { try await queue.enqueue(id: id) { $0.lane = lane } }
        let attempts = [await sender.nextAttempt(), await sender.nextAttempt()]
        return (queue, Dictionary(uniqueKeysWithValues: attempts.map { ($0.id, $0) }))
    }

    @Test(arguments: [AttemptOutcome.refused, .reset])
    func `a delivered request ends the delay of another lane whose attempt got no response`(
        failure: AttemptOutcome
    ) async throws {
        let sender = FakeSender()
        let (queue, attempts) = try await sending(sender)
        sender.answer(try #require(attempts["a"]), failure)
        try await changes.until(queue) { $0[.pending] == 1 }
        sender.answer(try #require(attempts["b"]), .status(200))
        let again = await sender.nextAttempt()
        #expect(again.id == "a")
        sender.answer(again, .status(200))
        try await changes.until(queue) { $0[.delivered] == 2 }
        await queue.stop()
    }

    @Test func `a successful probe ends the delays of its origin`() async throws {
        let sender = FakeSender()
        let (queue, attempts) = try await sending(sender)
        for attempt in attempts.values { sender.answer(attempt, .refused) }
        try await changes.until(queue) { $0[.pending] == 2 }
        await queue.probeSucceeded([try Origin(url: "https://other.example/")])
        await queue.probeSucceeded([try Origin(url: "https://example.com/health")])
        let again = [await sender.nextAttempt(), await sender.nextAttempt()]
        #expect(Set(again.map(\.id)) == ["a", "b"])
        await queue.stop()
    }

    @Test
    func `a flush and a release try one request of a lane without a budget, and the other one names it`()
        async throws
    {
        let sender = FakeSender()
        let (queue, attempts) = try await sending(sender, lanes: ["first", "first"]) { $0.retryRate = 0 }
        for attempt in attempts.values { sender.answer(attempt, .reset) }
        try await changes.until(queue) { $0[.pending] == 2 }
        try await queue.flush()
        let retried = await sender.nextAttempt().id
        let other = retried == "a" ? "b" : "a"
        let waiting = try #require(try await queue.request(other)?.summary)
        #expect(waiting.state == .pending && waiting.waitReason == .retryBudget)
        #expect(try await queue.hold([other]) == [.done(.held)])
        #expect(try await queue.release([other]) == [.done(.pending)])
        #expect(await sender.nextAttempt().id == other)
        await queue.stop()
    }
}
