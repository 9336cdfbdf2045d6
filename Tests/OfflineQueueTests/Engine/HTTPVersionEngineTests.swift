internal import ClientCore
internal import Foundation
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

/// The version of HTTP of attempts, and servers whose responses are invalid in HTTP/2.
@Suite(.timeLimit(.minutes(5))) struct HTTPVersionEngineTests {
    private let directory = TemporaryDirectory(marker: "version")
    private let changes = ChangeSignal()

    private func open(to server: HostileHTTP2Server) async throws -> OfflineQueue {
        let manager = ServerTrustPolicyManager(policies: ["127.0.0.1": .disableEvaluation])
        let session = SessionManager(serverTrustPolicyManager: manager)
        return try await directory.openQueue(SessionSender(session: session), signal: changes)
    }

    private func enqueueOnce(_ queue: OfflineQueue, to server: HostileHTTP2Server, _ version: HTTPVersion?)
        async throws
    {
        var options = EnqueueOptions(id: "a")
        (options.isAtMostOnce, options.httpVersion) = (true, version)
        _ = try await queue.enqueue(QueueRequest(method: "POST", url: server.url), options: options)
    }

    @Test(.enabled(if: TestAuthority.isAvailable, "needs openssl"))
    func `an at-most-once request is held if its response violates HTTP/2, and a retry delivers it`()
        async throws
    {
        let server = try HostileHTTP2Server("http-1.1-upgrade")
        let queue = try await open(to: server)
        try await enqueueOnce(queue, to: server, nil)
        try await changes.until(queue) { $0[.held] == 1 }
        let held = try #require(try await queue.request("a"))
        #expect(held.summary.holdReason == .ambiguous)
        let error = held.summary.lastError ?? ""
        #expect(error.hasPrefix("the server violates HTTP/2, the next request uses HTTP/1.1: "), "\(error)")
        #expect(error.contains("PROTOCOL_ERROR"), "\(error)")
        #expect(held.attempts.map(\.curlCode) == [92] && held.attempts.map(\.error) == [error])
        #expect(try await queue.retry(["a"]) == [.done(.pending)])
        try await changes.until(queue) { $0[.delivered] == 1 }
        #expect(try await queue.request("a")?.attempts.map(\.status) == [nil, 200])
        await queue.stop()
    }

    @Test(.enabled(if: TestAuthority.isAvailable, "needs openssl"))
    func `the first attempt of a request with HTTP/1.1 uses it`() async throws {
        let server = try HostileHTTP2Server("http-1.1-upgrade")
        let queue = try await open(to: server)
        try await enqueueOnce(queue, to: server, .http1)
        try await changes.until(queue) { $0[.delivered] + $0[.held] == 1 }
        #expect(try await queue.request("a")?.attempts.map(\.status) == [200])
        await queue.stop()
    }

    @Test func `an attempt uses the request's version of HTTP, or else that of the origin`() async throws {
        let sender = FakeSender { _ in .status(200) }
        let origin = try Origin(url: "https://example.com/")
        let queue = try await directory.openQueue(sender) { $0.httpVersions = [origin: .http1] }
        try await queue.enqueue(id: "a")
        #expect(await sender.nextAttempt().httpVersion == .http1)
        try await queue.enqueue(id: "b") { $0.httpVersion = .http2 }
        #expect(await sender.nextAttempt().httpVersion == .http2)
        try await queue.enqueue(id: "c", host: "example.com:8443")
        #expect(await sender.nextAttempt().httpVersion == nil)
        var configuration = await queue.configuration
        configuration.httpVersions = [:]
        await queue.use(configuration)
        try await queue.enqueue(id: "d")
        #expect(await sender.nextAttempt().httpVersion == nil, "a change applies to the next attempt")
        await queue.stop()
    }
}
