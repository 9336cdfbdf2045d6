internal import Foundation
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// Queues whose paths are probed for captive portals.
@Suite(.timeLimit(.minutes(5))) struct PortalEngineTests {
    private let directory = TemporaryDirectory(marker: "portal")
    private let changes = ChangeSignal()
    private let gate = FakeGate()
    private let portals = FakePortalDetector()

    private func open(
        _ sender: FakeSender,
        store wrap: (any QueueStore) -> any QueueStore = { $0 }
    ) async throws -> OfflineQueue {
        let store = ObservedStore(
            inner: try await SQLiteQueueStore(directory: directory.path),
            signal: changes
        )
        let queue = OfflineQueue(
            configuration: OfflineQueue.Configuration(withLongTimeouts: directory.path),
            store: wrap(store),
            sender: sender,
            gate: gate,
            portals: portals
        )
        try await queue.start()
        return queue
    }

    @Test func `requests over plain HTTP wait while there is a portal, without attempts and with the reason`()
        async throws
    {
        let sender = FakeSender { _ in .status(200) }
        let queue = try await open(sender)
        async let sent = queue.send(.post(scheme: "http"), options: EnqueueOptions(id: "a"))
        let probe = try await portals.nextProbe()
        #expect(probe.host == "example.com" && sender.attempts.isEmpty)
        probe.end(.captive(page: "http://portal.example/login"))
        let reason = QueuedReason.captivePortal(page: "http://portal.example/login")
        #expect(try await sent == .queued(id: "a", reason: reason))
        let waiting = try #require(try await queue.request("a")).summary
        #expect(waiting.waitReason == reason && waiting.attempts + waiting.deferrals == 0)
        let secure = try await queue.send(.post(), options: EnqueueOptions(id: "secure"))
        #expect(secure == .delivered(id: "secure", status: 200, body: Data()))
        #expect(sender.attempts.map(\.id) == ["secure"])
        gate.turn(.reachable(generation: 2))
        let clearing = portals.endAll(.clear)
        #expect(try await queue.result(of: "a")?.summary.state == .delivered)
        clearing.cancel()
        await queue.stop()
    }

    @Test func `if the server of the probe is down, a new host does not wait for its own probe`() async throws
    {
        let sender = FakeSender { _ in .status(200) }
        let queue = try await open(sender)
        portals.setFailed()
        let sent = try await queue.send(.post(scheme: "http"), options: EnqueueOptions(id: "a"))
        #expect(sent == .delivered(id: "a", status: 200, body: Data()), "the probe has not ended")
        let probe = try await portals.nextProbe()
        async let later = queue.send(
            QueueRequest(method: "POST", url: "http://example.org/"),
            options: EnqueueOptions(id: "b")
        )
        let other = try await portals.nextProbe()
        #expect(try await later == .delivered(id: "b", status: 200, body: Data()))
        for probe in [probe, other] { probe.end(.failed) }
        await queue.stop()
    }

    @Test func `a suspicious response makes the queue probe the path, and wait while there is a portal`()
        async throws
    {
        let sender = FakeSender()
        let queue = try await open(sender)
        _ = try await queue.enqueue(.post(scheme: "http"), options: EnqueueOptions(id: "a"))
        (try await portals.nextProbe()).end(.clear)
        sender.answer(await sender.nextAttempt(), .status(302, [("Location", "http://portal/")]))
        try await changes.until(queue) { $0[.pending] == 1 }
        try await queue.flush()
        let probe = try await portals.nextProbe()
        #expect(sender.attempts.count == 1)
        probe.end(.clear)
        // The retry may be due before the flush, and then the first probe is obsolete.
        let clearing = portals.endAll(.clear)
        defer { clearing.cancel() }
        sender.answer(await sender.nextAttempt(), .status(200))
        #expect(try await queue.result(of: "a")?.summary.attempts == 1)
        await queue.stop()
    }

    @Test func `a path change is passed to the detector before the new path is probed`() async throws {
        let sender = FakeSender { _ in .status(200) }
        let queue = try await open(sender)
        _ = try await queue.enqueue(.post(scheme: "http"), options: EnqueueOptions(id: "a"))
        let probe = try await portals.nextProbe()
        gate.turn(.reachable(generation: 2))
        let next = try await portals.nextProbe()
        let host = FakePortalDetector.Call.probe(host: "example.com")
        #expect(portals.calls == [host, .pathsChanged, host])
        for probe in [probe, next] { probe.end(.clear) }
        #expect(try await queue.result(of: "a")?.summary.state == .delivered)
        await queue.stop()
    }

    @Test func `a request that is sent when its path changes is repeated after the new path is probed`()
        async throws
    {
        let sender = FakeSender()
        gate.turn(.reachable(generation: 1, route: 1))
        let queue = try await open(sender)
        _ = try await queue.enqueue(.post(scheme: "http"), options: EnqueueOptions(id: "a"))
        (try await portals.nextProbe()).end(.clear)
        _ = await sender.nextAttempt()
        // The route is the same, so over HTTPS the attempt would continue.
        gate.turn(.reachable(generation: 2, route: 1))
        try await changes.until { try await queue.request("a")?.summary.deferrals == 1 }
        #expect(sender.attempts.count == 1)
        (try await portals.nextProbe()).end(.clear)
        sender.answer(await sender.nextAttempt(), .status(200))
        #expect(try await queue.result(of: "a")?.summary.attempts == 1)
        await queue.stop()
    }

    /// A store that runs a closure when it has claimed the first request.
    private struct ClaimingStore: WrappedStore {
        let inner: any QueueStore
        let onClaim: @Sendable () async throws -> Void

        func claim(_ claims: [LaneClaim]) async throws -> [ClaimedBatch] {
            let batches = try await inner.claim(claims)
            if batches.contains(where: { !$0.requests.isEmpty }) { try await onClaim() }
            return batches
        }
    }

    @Test func `a request is not sent if its path changes while it is claimed`() async throws {
        let sender = FakeSender()
        let (claimed, probes) = (Recorder<Void>(), Recorder<FakePortalDetector.Probe>())
        let queue = try await open(sender) { store in
            ClaimingStore(inner: store) { [gate, portals] in
                guard claimed.values.isEmpty else { return }
                gate.turn(.reachable(generation: 2))
                claimed.record(())
                // The probe of the new path shows that the queue knows the path.
                probes.record(try await portals.nextProbe())
            }
        }
        _ = try await queue.enqueue(.post(scheme: "http"), options: EnqueueOptions(id: "a"))
        (try await portals.nextProbe()).end(.clear)
        try await claimed.wait { !$0.isEmpty }
        // A request of another lane is the reason for the probe.
        _ = try await queue.enqueue(.post(scheme: "http"), options: EnqueueOptions(lane: "other", id: "b"))
        try await probes.wait { !$0.isEmpty }
        let probe = probes.values[0]
        try await changes.until { try await queue.request("a")?.summary.deferrals == 1 }
        #expect(sender.attempts.isEmpty)
        probe.end(.clear)
        for _ in 0..<2 { sender.answer(await sender.nextAttempt(), .status(200)) }
        #expect(try await queue.result(of: "a")?.summary.attempts == 1)
        #expect(try await queue.result(of: "b")?.summary.attempts == 1)
        await queue.stop()
    }

    @Test func `a queue without portals to detect sends at once`() async throws {
        let sender = FakeSender { _ in .status(200) }
        let queue = try await OfflineQueue(
            configuration: OfflineQueue.Configuration(withLongTimeouts: directory.path),
            sender: sender,
            gate: gate
        )
        try await queue.start()
        let sent = try await queue.send(.post(scheme: "http"), options: EnqueueOptions(id: "a"))
        #expect(sent == .delivered(id: "a", status: 200, body: Data()))
        #expect(portals.calls.isEmpty)
        await queue.stop()
    }

    @Test(arguments: ["https://example.com/", "ftp://example.com/", "generate_204", "http://"])
    func `a URL that cannot be probed is refused, and nothing is opened`(url: String) async throws {
        var configuration = OfflineQueue.Configuration(directory: directory.path)
        configuration.captivePortalProbe = url
        let error = await #expect(throws: QueueError.self) {
            _ = try await OfflineQueue(configuration: configuration)
        }
        #expect(error?.code == .invalidConfiguration)
        #expect(error?.message.contains("`captivePortalProbe`: `\(url)`") == true, "\(error as Any)")
        #expect(!FileManager.default.fileExists(atPath: directory.path))
    }
}
