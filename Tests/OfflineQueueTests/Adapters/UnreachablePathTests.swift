internal import ClientCore
internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

@testable internal import OfflineQueue

/// The state of the path is only a hint for when to try a request.
@Suite(.timeLimit(.minutes(5))) struct UnreachablePathTests {
    private let directory = TemporaryDirectory(marker: "hint")

    private let request = QueueRequest(
        method: "POST",
        url: "http://unresolvable.invalid/",
        body: .data(Data())
    )

    /// Sends a request with a monitor of a network namespace in which nothing is reachable.
    private func send(_ session: SessionManager?) async throws -> SendResult {
        let namespace = try NetworkNamespace()
        var watched = PathMonitor.Configuration()
        watched.networkNamespace = namespace.path
        var configuration = OfflineQueue.Configuration(withLongTimeouts: directory.path)
        configuration.captivePortalProbe = "http://192.0.2.1/generate_204"
        let queue = try await OfflineQueue(
            configuration: configuration,
            session: session,
            monitor: PathMonitor(configuration: watched)
        )
        try await queue.start()
        let result = try await queue.send(
            QueueRequest(method: "POST", url: "http://192.0.2.2/", body: .data(Data())),
            options: EnqueueOptions(id: "a")
        )
        await queue.stop()
        return result
    }

    @Test(.enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"))
    func `a session with a unix socket is always tried, a TCP session only with a path`() async throws {
        #expect(try await send(nil) == .queued(id: "a", reason: .noPath))
        let scratch = try ScratchDirectory()
        let server = try ScriptedServer(unixPath: scratch.file("socket"))
        let directory = self.directory.path
        try FileManager.default.removeItem(atPath: directory)
        let session = SessionManager(unixSocketPath: scratch.file("socket"))
        #expect(try await send(session) == .delivered(id: "a", status: 200, body: Data()))
        #expect(server.requests.map(\.target) == ["/"], "no path is probed")
    }

    @Test func `a host that stays unreachable is still tried, and a success counts`() async throws {
        let sender = FakeSender()
        let queue = try await directory.openQueue(sender, gate: FakeGate(.notReachable)) {
            ($0.backoffBase, $0.backoffCap) = (.milliseconds(5), .milliseconds(5))
        }
        _ = try await queue.enqueue(request, options: EnqueueOptions(id: "a"))
        for _ in 0..<3 { sender.answer(await sender.nextAttempt(), .unreachable) }
        sender.answer(await sender.nextAttempt(), .status(200))
        let summary = try #require(try await queue.result(of: "a")).summary
        #expect(summary.state == .delivered && summary.attempts == 1 && summary.deferrals == 3)
        await queue.stop()
    }

    @Test(.enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"))
    func
        `a name that cannot be resolved is tried without a default route, and failed lookups are not counted`()
        async throws
    {
        let testbed = try VethTestbed()
        try testbed.near.ip("route del default", "-6 route del default")
        var watched = PathMonitor.Configuration()
        watched.networkNamespace = testbed.near.path
        let resolver = NameResolver { _ in .failure(.init(code: EAI_AGAIN)) }
        let monitor = PathMonitor(configuration: watched, resolver: resolver)
        let sender = FakeSender()
        let queue = try await directory.openQueue(sender, gate: MonitorGate(monitor: monitor))
        _ = try await queue.enqueue(request, options: EnqueueOptions(id: "a"))
        let unresolved = AttemptFailure(code: 6, phase: .resolve, message: "could not resolve")
        for _ in 0..<3 { sender.answer(await sender.nextAttempt(), .failure(unresolved)) }
        sender.answer(await sender.nextAttempt(), .status(200))
        let summary = try #require(try await queue.result(of: "a")).summary
        #expect(summary.state == .delivered && summary.attempts == 1 && summary.deferrals == 3)
        await queue.stop()
    }

    @Test(.enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"))
    func
        `requests to a port that a rule prohibits wait until the rule is deleted, those to other ports do not`()
        async throws
    {
        let testbed = try VethTestbed()
        try testbed.near.ip("rule add ipproto tcp dport 8080 prohibit")
        var watched = PathMonitor.Configuration()
        watched.networkNamespace = testbed.near.path
        let gate = MonitorGate(monitor: PathMonitor(configuration: watched))
        let queue = try await directory.openQueue(FakeSender { _ in .status(200) }, gate: gate)
        func send(_ id: String, port: Int) async throws -> SendResult {
            let url = "http://\(VethTestbed.remoteAddress):\(port)/"
            let request = QueueRequest(method: "POST", url: url, body: .data(Data()))
            return try await queue.send(request, options: EnqueueOptions(id: id))
        }
        #expect(try await send("a", port: 8080) == .queued(id: "a", reason: .notReachable(.prohibited)))
        #expect(try await send("b", port: 8081) == .delivered(id: "b", status: 200, body: Data()))
        let prohibited = Endpoint(host: VethTestbed.remoteAddress, port: 8080)
        #expect(await gate.state(of: prohibited) == .down(.prohibited))
        try testbed.near.ip("rule del ipproto tcp dport 8080 prohibit")
        #expect(try await queue.result(of: "a")?.summary.state == .delivered)
        await queue.stop()
    }

    /// Without a path, the next attempt to the host would follow only after the backoff, which takes hours here.
    @Test func `a host that becomes reachable is tried at once`() async throws {
        let sender = FakeSender()
        let gate = FakeGate(.notReachable)
        let queue = try await directory.openQueue(sender, gate: gate)
        #expect(
            try await queue.send(request, options: EnqueueOptions(id: "a"))
                == .queued(id: "a", reason: .noPath)
        )
        gate.turn(.reachable(generation: 2))
        sender.answer(await sender.nextAttempt(), .status(200))
        #expect(try await queue.result(of: "a")?.summary.state == .delivered)
        await queue.stop()
    }
}
