internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

/// Credentials of requests whose paths are probed for captive portals.
@Suite(.timeLimit(.minutes(5))) struct PortalCredentialTests {
    private let directory = TemporaryDirectory(marker: "portal-credential")
    private let changes = ChangeSignal()
    private let gate = FakeGate()
    private let portals = FakePortalDetector()
    /// The calls of the credential's provider.
    private let calls = Recorder<String>()

    private func open(_ sender: any AttemptSender) async throws -> OfflineQueue {
        try await directory.openQueue(sender, gate: gate, portals: portals, signal: changes) {
            // The provider of a test blocks, however busy the machine is.
            ($0.credentialWait, $0.credentialTimeout) = (.seconds(600), .seconds(600))
        }
    }

    /// Enqueues a request that must not be sent twice. A change of its path does not abort its attempt.
    private func enqueue(
        _ id: String,
        to url: String,
        credential: String? = nil,
        in queue: OfflineQueue
    ) async throws {
        var options = EnqueueOptions(lane: id, id: id)
        options.isAtMostOnce = true
        options.credential = credential
        _ = try await queue.enqueue(QueueRequest(method: "POST", url: url), options: options)
    }

    @Test func `the provider of a credential is not called before the path is known to be free of portals`()
        async throws
    {
        let sender = FakeSender { _ in .status(200) }
        let queue = try await open(sender)
        let credential = try QueueCredential(origins: ["http://example.com"]) { [calls] in
            calls.record("called")
            return .bearer("token")
        }
        try await queue.register(credential, as: "token")
        try await enqueue("a", to: "http://example.com/", credential: "token", in: queue)
        let probe = try await portals.nextProbe()
        #expect(calls.values.isEmpty)
        probe.end(.captive(page: nil))
        let other = try await queue.send(.post(scheme: "http"), options: EnqueueOptions(id: "b"))
        #expect(other == .queued(id: "b", reason: .captivePortal(page: nil)))
        #expect(calls.values.isEmpty)
        gate.turn(.reachable(generation: 2))
        let clearing = portals.endAll(.clear)
        defer { clearing.cancel() }
        #expect(try await queue.result(of: "a")?.summary.state == .delivered)
        #expect(calls.values == ["called"])
        await queue.stop()
    }

    @Test func `a credential is not sent if the path changes while its provider is called`() async throws {
        let server = try ScriptedServer { _ in .respond("thanks") }
        let queue = try await open(SessionSender(session: SessionManager()))
        let provider = Gate()
        let adapter = TestAdapter { [calls] request in
            calls.record("called")
            provider.wait()
            request.setValue("token", forHTTPHeaderField: "X-Token")
        }
        try await queue.register(try QueueCredential(adapter: adapter, origins: [server.url]), as: "token")
        try await enqueue("a", to: server.url + "/a", credential: "token", in: queue)
        (try await portals.nextProbe()).end(.clear)
        try await calls.wait { $0.count == 1 }
        let (endpoint, changed) = (try Origin(url: server.url).endpoint, GateState.reachable(generation: 2))
        gate.turn(changed)
        try await poll { await queue.scheduler.gateState(of: endpoint) == changed }
        // The reason for the next probe.
        try await enqueue("b", to: server.url + "/b", in: queue)
        let probe = try await portals.nextProbe()
        provider.open()
        try await changes.until { try await queue.request("a")?.summary.deferrals == 1 }
        #expect(server.requests.isEmpty)
        provider.open()
        probe.end(.clear)
        for id in ["a", "b"] { #expect(try await queue.result(of: id)?.summary.attempts == 1) }
        #expect(calls.values.count == 2 && server.requests.count == 2)
        await queue.stop()
    }
}
