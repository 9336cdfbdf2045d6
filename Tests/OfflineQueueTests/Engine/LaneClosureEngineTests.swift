internal import Foundation
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// Lanes that are closed by failures while other requests of the lane are in flight.
@Suite(.timeLimit(.minutes(5))) struct LaneClosureEngineTests {
    private let directory = TemporaryDirectory(marker: "closures")
    private let changes = ChangeSignal()

    /// Returns a queue that is sending the requests `a` and `b` of one lane, and their attempts by id.
    private func sending(_ sender: FakeSender) async throws -> (OfflineQueue, [String: Attempt]) {
        let queue = try await directory.openQueue(sender, signal: changes)
        try await queue.enqueue(id: "a")
        try await queue.enqueue(id: "b")
        let attempts = [await sender.nextAttempt(), await sender.nextAttempt()]
        return (queue, Dictionary(uniqueKeysWithValues: attempts.map { ($0.id, $0) }))
    }

    // The codes of libcurl for a client certificate that cannot be used (58), and for an untrusted server (60).
    @Test(arguments: [58, 60])
    func `a held lane opens when its last request is delivered`(code: CInt) async throws {
        let sender = FakeSender()
        let (queue, attempts) = try await sending(sender)
        let failure = AttemptFailure(code: code, phase: .connect, message: "certificate")
        sender.answer(try #require(attempts["a"]), .failure(failure))
        try await changes.until(queue) { $0[.held] == 1 }
        #expect(try await queue.cancel(["a"]) == [.done(.cancelled)])
        sender.answer(try #require(attempts["b"]), .status(200))
        #expect(try await queue.result(of: "b")?.summary.state == .delivered)
        try await queue.enqueue(id: "c")
        #expect(await sender.nextAttempt().id == "c")
        await queue.stop()
    }

    @Test func `a lane closed by failures and by its server is listed once`() async throws {
        let sender = FakeSender()
        let (queue, attempts) = try await sending(sender)
        sender.answer(try #require(attempts["a"]), .status(511))
        try await changes.until(queue) { $0[.pending] == 1 }
        #expect(try await queue.statistics().closedLanes.map(\.closure.cause) == [.failures])
        sender.answer(try #require(attempts["b"]), .status(429, [("Retry-After", "60")]))
        try await changes.until(queue) { $0[.pending] == 2 }
        #expect(try await queue.statistics().closedLanes.map(\.closure.status) == [429])
        await queue.stop()
    }
}
