internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

/// Providers that hang or fail: they delay only the requests with their credential.
@Suite(.timeLimit(.minutes(5))) struct SlowProviderTests {
    private let directory = TemporaryDirectory(marker: "credential")
    private let changes = ChangeSignal()
    private static let origin = "https://example.com"

    /// Opens a queue with a single slot.
    private func open(_ sender: FakeSender) async throws -> OfflineQueue {
        try await directory.openQueue(sender, signal: changes) {
            ($0.inflight, $0.inflightPerOrigin, $0.inflightPerLane) = (1, 1, 1)
            $0.credentialWait = .milliseconds(10)
            // The hanging call must not end by itself, however busy the machine is.
            $0.credentialTimeout = .seconds(600)
            ($0.backoffBase, $0.backoffCap) = (.milliseconds(1), .milliseconds(50))
        }
    }

    @Test func `calls that ended without a failure of the provider leave nothing to remember`() {
        var calls = ProviderCalls<Int>(maximumWait: .seconds(1))
        for (remedy, isIdle) in [(WithheldReason.Remedy.change, true), (.retry, false)] {
            calls.begin(Task { 1 }, for: "request", at: .now)
            #expect(!calls.isIdle)
            calls.end("request", WithheldReason(remedy, "the fault"), at: .now)
            calls.remove("request")
            #expect(calls.isIdle == isIdle)
        }
    }

    @Test func `a provider that hangs keeps no slot, and its result serves the request that waited for it`()
        async throws
    {
        let sender = FakeSender { _ in .status(200) }
        let queue = try await open(sender)
        let gate = Gate()
        let called = Recorder<String>()
        let adapter = TestAdapter { request in
            called.record(request.url!.lastPathComponent)
            gate.wait()
            request.setValue("yes", forHTTPHeaderField: "X-Token")
        }
        try await queue.register(try QueueCredential(adapter: adapter, origins: [Self.origin]), as: "slow")
        try await queue.register(try QueueCredential(.bearer("t"), origins: [Self.origin]), as: "fast")
        try await queue.enqueue(id: "first", credential: "slow")
        try await called.wait { $0 == ["first"] }
        for number in 0..<5 { try await queue.enqueue(id: "slow\(number)", credential: "slow") }
        try await queue.enqueue(id: "plain")
        try await queue.enqueue(id: "fast", credential: "fast")
        try await changes.until(queue) { $0[.delivered] == 2 }
        #expect(Set(sender.attempts.map(\.id)) == ["plain", "fast"] && called.values == ["first"])
        try await changes.until { try await queue.request("slow0")?.summary.lastError != nil }
        let reason = try #require(try await queue.request("slow0")?.summary.lastError)
        #expect(reason.contains("`slow` has not returned within 10 milliseconds"), "\(reason)")
        // Each call of the provider waits once.
        for _ in 0..<100 { gate.open() }
        try await changes.until(queue) { $0[.delivered] == 8 }
        #expect(called.values.count { $0 == "first" } == 1, "the result of the first call is used")
        #expect(sender.attempts.filter { $0.value(of: "X-Token") == "yes" }.count == 6)
        await queue.stop()
    }

    // MARK: Failures

    private func credential(_ fails: TestToken, _ called: Recorder<String>) throws -> QueueCredential {
        try QueueCredential(origins: ["https://a.example"]) {
            called.record("called")
            if fails.value == "yes" { throw QueueError.leftToQueue("a") }
            return .bearer("t")
        }
    }

    @Test func `a provider that fails is not called again for a while`() async throws {
        let time = Lock(ContinuousClock.now)
        let resolver = CredentialResolver(timeout: .seconds(600), maximumWait: .seconds(300)) {
            time.withLock { $0 }
        }
        let (fails, called) = (TestToken("yes"), Recorder<String>())
        await resolver.register(try credential(fails, called), as: "token")
        func delay(_ id: String) async -> Duration? {
            do {
                _ = try await resolver.authorize(.toExample(id: id), with: "token", nil)
                return nil
            } catch {
                return (error as? WithheldReason)?.delay
            }
        }
        for (number, expected) in [1, 2, 4, 8, 16, 30, 30].enumerated() {
            #expect(await delay("a") == .seconds(expected))
            #expect(await delay("b") == .seconds(expected))
            #expect(called.values.count == number + 1)
            time.withLock { $0 += .seconds(expected) }
        }
        fails.set("no")
        #expect(await delay("a") == nil && called.values.count == 8)
        fails.set("yes")
        #expect(await delay("a") == .seconds(1), "a success ends the row of failures")
        await resolver.forgetFailures(of: ["token"])
        #expect(await delay("a") == .seconds(1) && called.values.count == 10)
    }
}
