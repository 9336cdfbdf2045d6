internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

@testable internal import OfflineQueue

/// The binding of attempts whose requests require a kind of interface.
@Suite(.timeLimit(.minutes(5))) struct BindingEngineTests {
    private let directory = TemporaryDirectory(marker: "binding")
    private let changes = ChangeSignal()

    private func binding(_ interface: UInt32) -> SocketBinding {
        SocketBinding(interfaceIndex: interface, source: nil, family: .ipv4)
    }

    /// The state of a path over a numbered interface.
    private func up(_ number: UInt32, isMetered: Bool = false) -> GateState {
        let interface = PathInterface(kind: .ethernet, isMetered: isMetered, binding: binding(number))
        return .reachable(generation: UInt64(number), route: UInt64(number), interface: interface)
    }

    private func open(_ sender: any AttemptSender, _ gate: FakeGate) async throws -> OfflineQueue {
        try await directory.openQueue(sender, gate: gate, signal: changes) {
            ($0.backoffBase, $0.backoffCap) = (Backoff.defaultBase, Backoff.defaultCap)
        }
    }

    private func request(_ id: String) -> QueueRequest {
        QueueRequest(method: "POST", url: "https://example.com/\(id)")
    }

    /// The options of a request that must not be sent twice, so that a change of the path does not interrupt it.
    private func options(_ id: String, isUnmetered: Bool = true) -> EnqueueOptions {
        var options = EnqueueOptions(id: id)
        options.isAtMostOnce = true
        options.constraints.isUnmetered = isUnmetered
        return options
    }

    private func enqueue(_ id: String, isUnmetered: Bool = true, to queue: OfflineQueue) async throws {
        _ = try await queue.enqueue(request(id), options: options(id, isUnmetered: isUnmetered))
    }

    /// A sender whose pooled connections are dropped when the latch opens.
    private struct SlowDrop: AttemptSender {
        let inner: FakeSender
        let latch: Latch
        let drops = Recorder<Bool>()

        func send(_ attempt: Attempt) async -> AttemptOutcome { await inner.send(attempt) }

        func dropConnections() async {
            await inner.dropConnections()
            drops.record(true)
            await latch.wait()
        }
    }

    @Test func `an attempt that waits for a path change is bound to the path after it`() async throws {
        let (sender, latch, gate) = (FakeSender(), Latch(), FakeGate(up(1)))
        let slow = SlowDrop(inner: sender, latch: latch)
        let queue = try await open(slow, gate)
        // Keeps the host watched.
        try await enqueue("unbound", isUnmetered: false, to: queue)
        #expect(await sender.nextAttempt().binding == nil)
        gate.turn(up(2))
        try await slow.drops.wait { $0.count == 1 }
        try await enqueue("a", to: queue)
        try await changes.until { try await queue.request("a")?.summary.state == .inflight }
        gate.turn(up(3, isMetered: true))
        let endpoint = Endpoint.https("example.com")
        try await poll { [metered = up(3, isMetered: true)] in
            await queue.scheduler.gateState(of: endpoint) == metered
        }
        let waiting = try await queue.send(request("waiting"), options: options("waiting"))
        guard case .queued(_, .constraint(.unmetered)) = waiting else {
            Issue.record("\(waiting)")
            return
        }
        latch.open()
        try await changes.until { try await queue.request("a")?.summary.state == .pending }
        #expect(sender.attempts.map(\.id) == ["unbound"], "the interface is metered now")
        gate.turn(up(4))
        #expect(await sender.nextAttempt().binding == binding(4))
        await queue.stop()
    }

    @Test func `a bound attempt whose interface was removed does not count`() async throws {
        let lost = AttemptOutcome.failure(
            AttemptFailure(code: 7, errno: ENODEV, phase: .connect, message: "No such device")
        )
        let sender = FakeSender()
        let queue = try await open(sender, FakeGate(up(1)))
        try await enqueue("a", to: queue)
        let first = await sender.nextAttempt()
        #expect(first.binding == binding(1))
        sender.answer(first, lost)
        sender.answer(await sender.nextAttempt(), .status(200))
        try await changes.until(queue) { $0[.delivered] == 1 }
        let summary = try #require(try await queue.request("a")).summary
        #expect(summary.attempts == 1 && summary.deferrals == 1)
        await queue.stop()
    }

    @Test func `a change of the source address alone changes the binding of later attempts`() {
        var scheduler = Scheduler(seed: 1)
        var constraints = RequestConstraints()
        constraints.isUnmetered = true
        let origin = Origin(scheme: "https", host: "a", port: 443)
        let lane = Scheduler.LaneInfo(id: 1, origin: origin, mode: .parallel, constraints: constraints)
        _ = scheduler.handle(.rows(lane, due: .zero), now: .zero)
        for source in ["192.0.2.1", "192.0.2.2"] {
            let binding = SocketBinding(interfaceIndex: 2, source: IPAddress(source), family: .ipv4)
            let interface = PathInterface(kind: .ethernet, isMetered: false, binding: binding)
            let state = GateState.reachable(generation: 1, route: 1, interface: interface)
            _ = scheduler.handle(.gate(.https("a"), state), now: .zero)
            #expect(scheduler.binding(lane: 1) == binding)
        }
    }
}
