internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// The effect of lost and found paths on the requests of a queue.
@Suite(.timeLimit(.minutes(5))) struct PathLossEngineTests {
    private let directory = TemporaryDirectory(marker: "loss")
    private let changes = ChangeSignal()

    private func open(
        _ sender: FakeSender,
        _ gate: any HostGate,
        lossGrace: Duration? = nil
    ) async throws -> OfflineQueue {
        try await directory.openQueue(sender, gate: gate, signal: changes) {
            ($0.backoffBase, $0.backoffCap) = (Backoff.defaultBase, Backoff.defaultCap)
            if let lossGrace { $0.lossGrace = lossGrace }
        }
    }

    private func options(_ id: String, isAtMostOnce: Bool = false) -> EnqueueOptions {
        var options = EnqueueOptions(lane: id, id: id)
        options.maximumAttempts = 1
        options.isAtMostOnce = isAtMostOnce
        return options
    }

    @Test func `an attempt whose path is lost ends uncounted, or is held if it must not be sent twice`()
        async throws
    {
        let sender = FakeSender()
        let gate = FakeGate(.reachable(generation: 1, route: 1))
        let queue = try await open(sender, gate)
        async let result = queue.send(.post(), options: options("a"))
        _ = await sender.nextAttempt()
        _ = try await queue.enqueue(.post(), options: options("once", isAtMostOnce: true))
        _ = await sender.nextAttempt()
        gate.turn(.notReachable)
        #expect(try await result == .queued(id: "a", reason: .noPath))
        try await changes.until(queue) { $0[.pending] == 1 && $0[.held] == 1 }
        let lost = try #require(try await queue.request("a")).summary
        #expect(lost.attempts == 0 && lost.deferrals == 1)
        #expect(lost.lastError == "the path to example.com was lost")
        #expect(try await queue.request("once")?.summary.holdReason == .ambiguous)
        gate.turn(.reachable(generation: 2, route: 1))
        sender.answer(await sender.nextAttempt(), .status(200))
        #expect(try await queue.result(of: "a")?.summary.state == .delivered)
        await queue.stop()
    }

    @Test func `send reports that a request that must not be sent twice is held`() async throws {
        let sender = FakeSender()
        let gate = FakeGate(.reachable(generation: 1, route: 1))
        let queue = try await open(sender, gate)
        async let result = queue.send(.post(), options: options("once", isAtMostOnce: true))
        _ = await sender.nextAttempt()
        gate.turn(.notReachable)
        #expect(try await result == .queued(id: "once", reason: .held(.ambiguous)))
        await queue.stop()
    }

    @Test func `a response within the grace period counts`() async throws {
        let sender = FakeSender()
        let gate = FakeGate(.reachable(generation: 1, route: 1))
        let queue = try await open(sender, gate, lossGrace: .seconds(3600))
        _ = try await queue.enqueue(.post(), options: options("a"))
        let attempt = await sender.nextAttempt()
        gate.turn(.notReachable)
        sender.answer(attempt, .status(200))
        #expect(try await queue.result(of: "a")?.summary.state == .delivered)
        await queue.stop()
    }

    @Test func `a short loss of the same path ends no attempt`() async throws {
        let sender = FakeSender()
        let gate = FakeGate(.reachable(generation: 1, route: 1))
        let queue = try await open(sender, gate, lossGrace: .seconds(3600))
        _ = try await queue.enqueue(.post(), options: options("a"))
        let attempt = await sender.nextAttempt()
        gate.turn(.notReachable)
        gate.turn(.reachable(generation: 2, route: 1))
        // When `b` is attempted, the queue has processed the new state of the path.
        _ = try await queue.enqueue(.post(), options: options("b"))
        sender.answer(await sender.nextAttempt(), .status(200))
        try await changes.until(queue) { $0[.delivered] == 1 }
        sender.answer(attempt, .status(200))
        try await changes.until(queue) { $0[.delivered] == 2 }
        #expect(sender.attempts.count == 2)
        await queue.stop()
    }

    @Test func `the last error of a request whose attempts are used up names the cause`() async throws {
        let queue = try await open(
            FakeSender { _ in .refused },
            FakeGate(.reachable(generation: 1, route: 1))
        )
        let result = try await queue.send(.post(), options: options("a"))
        #expect(result == .dead(id: "a", reason: "failed 1 time: Connection refused"))
        await queue.stop()
    }

    /// A gate whose current state differs from the last one that it reported.
    private struct LateGate: HostGate {
        let inner: FakeGate
        let fresh: GateState

        func watch(_ endpoint: Endpoint, report: @escaping @Sendable (GateState) -> Void)
            -> (any GateWatch)?
        {
            inner.watch(endpoint, report: report)
        }

        func state(of endpoint: Endpoint) async -> GateState? { fresh }
    }

    @Test(arguments: [GateState.notReachable, .reachable(generation: 2)])
    func `the gate's current state decides whether a failure counts`(fresh: GateState) async throws {
        let gate = LateGate(inner: FakeGate(.reachable(generation: 1, route: 1)), fresh: fresh)
        let invalid = AttemptOutcome.failure(
            AttemptFailure(code: 7, errno: EINVAL, phase: .connect, message: "Invalid argument")
        )
        let queue = try await open(FakeSender { _ in invalid }, gate)
        _ = try await queue.send(.post(), options: options("a"))
        let summary = try #require(try await queue.request("a")).summary
        #expect(!summary.state.isFinal && summary.deferrals >= 1, "\(summary)")
        await queue.stop()
    }
}
