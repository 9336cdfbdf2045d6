internal import Foundation
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

/// The requests that continue after a refresh or a change of their credential.
@Suite(.timeLimit(.minutes(5))) struct CredentialRefreshTests {
    private let directory = TemporaryDirectory(marker: "credential")
    private let changes = ChangeSignal()

    private func wait(_ id: String, for state: QueuedRequest.State, in queue: OfflineQueue) async throws {
        try await changes.until { try await queue.request(id)?.summary.state == state }
    }

    /// A sender to a server that accepts one value, and rejects every value for the path `/locked`.
    private func sender(accepting value: String) -> FakeSender {
        FakeSender { attempt in
            let isGood = attempt.value(of: "Authorization") == "Bearer \(value)"
            return .status(isGood && !attempt.url.hasSuffix("/locked") ? 200 : 401)
        }
    }

    /// A credential with the value of `token`. A refresh changes it to the value of `next`.
    private func credential(
        for origin: String,
        _ token: TestToken,
        next: TestToken
    ) throws -> QueueCredential {
        try QueueCredential(
            origins: [origin],
            refresh: { token.refresh(to: next.value) },
            value: { .bearer(token.value) }
        )
    }

    private func register(_ token: TestToken, next: TestToken, in queue: OfflineQueue) async throws {
        try await queue.register(credential(for: "https://example.com", token, next: next), as: "token")
    }

    /// A resolver for attempts of ``Attempt/toExample(id:mayStillBeSent:)``. A refresh changes the token to `new`.
    private func makeResolver(refreshing token: TestToken) async throws -> CredentialResolver {
        let resolver = CredentialResolver(timeout: .seconds(600), maximumWait: .seconds(300))
        let credential = try self.credential(for: "https://a.example", token, next: TestToken("new"))
        await resolver.register(credential, as: "token")
        return resolver
    }

    @Test func `a refresh that the server accepts releases the requests that were held before it`()
        async throws
    {
        let queue = try await directory.openQueue(sender(accepting: "good"), signal: changes)
        let (token, next) = (TestToken("old"), TestToken("rejected"))
        try await register(token, next: next, in: queue)
        try await queue.enqueue(id: "a", credential: "token")
        try await wait("a", for: .held, in: queue)
        next.set("good")
        try await queue.enqueue(id: "b", credential: "token")
        try await wait("b", for: .delivered, in: queue)
        try await wait("a", for: .delivered, in: queue)
        #expect(token.refreshes == 2)
        await queue.stop()
    }

    @Test func `a request that the server rejected with the refreshed value stays held`() async throws {
        let sender = sender(accepting: "good")
        let queue = try await directory.openQueue(sender, signal: changes)
        let token = TestToken("old")
        try await register(token, next: TestToken("good"), in: queue)
        let start = ContinuousClock.now
        try await queue.enqueue(id: "locked", credential: "token")
        try await wait("locked", for: .held, in: queue)
        #expect(sender.attempts.count == 2 && token.refreshes == 1)
        await queue.credentialAccepted(.init(credential: "token", began: start))
        #expect(try await queue.request("locked")?.summary.state == .held)
        // A later refresh is worth another attempt.
        await queue.credentialAccepted(.init(credential: "token", began: .now))
        try await changes.until { sender.attempts.count == 4 }
        try await wait("locked", for: .held, in: queue)
        await queue.stop()
    }

    @Test func `an acceptance is reported once for each refresh`() async throws {
        let resolver = try await makeResolver(refreshing: TestToken("old"))
        let accepted = Recorder<String>()
        await resolver.onAcceptance { accepted.record($0.credential) }
        let attempt = Attempt.toExample(id: "a")
        let old = try await resolver.authorize(attempt, with: "token", nil)
        await resolver.accepted(old, of: "token")
        let new = try #require(try await resolver.renew(attempt, with: "token", after: old, nil))
        await resolver.accepted(old, of: "token")
        #expect(accepted.values.isEmpty, "no server has accepted the new value")
        await resolver.accepted(new, of: "token")
        await resolver.accepted(new, of: "token")
        let newer = try #require(try await resolver.renew(attempt, with: "token", after: new, nil))
        await resolver.accepted(newer, of: "token")
        try await accepted.wait { $0.count == 2 }
        #expect(accepted.values == ["token", "token"])
    }

    @Test func `a credential is not refreshed for a request that must not be sent any more`() async throws {
        let token = TestToken("old")
        let resolver = try await makeResolver(refreshing: token)
        let rejecting = FakeSender { _ in .status(401) }
        let sender = CredentialSender(sender: rejecting, resolver: resolver)
        // The sender keeps its attempts.
        let attempt = Attempt.toExample(id: "a") { [weak rejecting] in rejecting?.attempts.isEmpty == true }
        guard case .failure(let failure) = await sender.send(attempt) else {
            Issue.record("the response counts")
            return
        }
        #expect(failure.code == 42 && failure.phase == .resolve)
        #expect(failure.message.hasPrefix("HTTP 401; the credential is not refreshed"))
        #expect(token.refreshes == 0 && rejecting.attempts.count == 1)
    }

    @Test func `an attempt that must not be sent again after a refresh reports the 401`() async throws {
        let token = TestToken("old")
        let resolver = try await makeResolver(refreshing: token)
        let rejecting = FakeSender { attempt in
            attempt.value(of: "Authorization") == "Bearer old" ? .status(401) : .unsent
        }
        let sender = CredentialSender(sender: rejecting, resolver: resolver)
        guard case .failure(let failure) = await sender.send(Attempt.toExample(id: "a")) else {
            Issue.record("a response counts")
            return
        }
        #expect(failure.code == 42 && failure.phase == .resolve && failure.status == nil)
        #expect(failure.message.hasPrefix("HTTP 401; the request is not sent again"))
        #expect(token.refreshes == 1 && rejecting.attempts.count == 2)
    }

    /// With the budget of retries, the requests would take 5 minutes.
    @Test func `requests that a changed credential releases are not limited like retries`() async throws {
        let token = TestToken("old")
        let queue = try await directory.openQueue(sender(accepting: "good"), signal: changes)
        let credential = try QueueCredential(origins: ["https://example.com"]) { .bearer(token.value) }
        try await queue.register(credential, as: "token")
        for number in 0..<300 { try await queue.enqueue(id: "\(number)", credential: "token") }
        try await changes.until(queue) { $0[.held] == 300 }
        token.set("good")
        try await queue.credentialsChanged(["token"])
        try await changes.until(queue) { $0[.delivered] == 300 }
        #expect(try await queue.request("0")?.summary.attempts == 1)
        await queue.stop()
    }
}

extension Attempt {
    /// An attempt to `https://a.example/` with the credential `token`.
    static func toExample(
        id: String,
        mayStillBeSent: @escaping @Sendable () async -> Bool = { true }
    ) -> Attempt {
        Attempt(
            id: id,
            method: "GET",
            url: "https://a.example/",
            headers: [],
            body: .none,
            mayBeSentTwice: true,
            credential: "token",
            mayStillBeSent: mayStillBeSent
        )
    }
}
