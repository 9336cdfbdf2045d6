internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

/// How the queue adds credentials to attempts, and what happens if it cannot.
@Suite(.timeLimit(.minutes(5))) struct CredentialEngineTests {
    private let directory = TemporaryDirectory(marker: "credential")
    private let changes = ChangeSignal()
    private static let origin = "https://example.com"

    /// Waits until a request has a state, and returns it.
    @discardableResult
    private func wait(_ id: String, for state: QueuedRequest.State, in queue: OfflineQueue) async throws
        -> QueuedRequest
    {
        try await changes.until { try await queue.request(id)?.summary.state == state }
        return try #require(try await queue.request(id)).summary
    }

    /// Waits until a pending request has failed once, and returns it.
    private func waitForDelay(of id: String, in queue: OfflineQueue) async throws -> QueuedRequest {
        try await changes.until {
            let request = try await queue.request(id)?.summary
            return request?.state == .pending && request?.lastError != nil
        }
        return try #require(try await queue.request(id)).summary
    }

    private func credential(
        _ token: TestToken,
        refresh: (@Sendable () async throws -> Void)? = nil
    ) throws -> QueueCredential {
        try QueueCredential(origins: [Self.origin], refresh: refresh) { .bearer(token.value) }
    }

    // MARK: Adding

    @Test func `the current value is added at each attempt, and only the name is stored`() async throws {
        let sender = FakeSender()
        let token = TestToken("secret-one")
        let queue = try await directory.openQueue(sender, signal: changes) {
            ($0.backoffBase, $0.backoffCap) = (.milliseconds(1), .milliseconds(2))
        }
        try await queue.register(try credential(token), as: "token")
        try await queue.enqueue(id: "a", credential: "token")
        let first = await sender.nextAttempt()
        #expect(first.value(of: "Authorization") == "Bearer secret-one")
        token.set("secret-two")
        sender.answer(first, .status(503))
        let second = await sender.nextAttempt()
        #expect(second.value(of: "Authorization") == "Bearer secret-two")
        #expect(second.value(of: "Idempotency-Key") == first.value(of: "Idempotency-Key"))
        sender.answer(second, .status(302, [("Location", "https://other.example/secret-two")]))
        try await wait("a", for: .dead, in: queue)
        let details = try #require(try await queue.request("a"))
        #expect(details.options.credential == "token" && details.headers.isEmpty)
        #expect(details.response?.headers.first?.value == "https://other.example/REDACTED")
        #expect(sender.attempts.count == 2, "the redirect is not followed")
        var export = Data()
        _ = try await queue.export { export += $0 }
        #expect(export.firstRange(of: Data("secret-".utf8)) == nil)
        #expect(export.firstRange(of: Data(#""credential":"token""#.utf8)) != nil)
        #expect(try files(in: directory.path, containing: "secret-").isEmpty)
        await queue.stop()
        #expect(try files(in: directory.path, containing: "secret-").isEmpty)
    }

    @Test func `a credential is not sent to an origin that it does not list`() async throws {
        let sender = FakeSender { _ in .status(200) }
        let queue = try await directory.openQueue(sender, signal: changes)
        try await queue.register(try credential(TestToken("t")), as: "token")
        for host in ["example.com.evil.example", "sub.example.com", "example.com:8443"] {
            try await queue.enqueue(id: "to-\(host.count)", host: host, credential: "token")
            let held = try await wait("to-\(host.count)", for: .held, in: queue)
            #expect(held.holdReason == .auth)
            #expect(held.lastError?.contains("accepted: https://example.com:443") == true, "\(held)")
        }
        #expect(sender.attempts.isEmpty)
        await queue.stop()
    }

    @Test(arguments: ["origin", "method", "body"])
    func `an adapter cannot send a request elsewhere or change its content`(part: String) async throws {
        let sender = FakeSender { _ in .status(200) }
        let queue = try await directory.openQueue(sender, signal: changes)
        let adapter = TestAdapter { request in
            switch part {
            case "origin": request.url = URL(string: "https://evil.example/")
            case "method": request.httpMethod = "DELETE"
            default: request.httpBody = Data("x".utf8)
            }
        }
        try await queue.register(try QueueCredential(adapter: adapter, origins: [Self.origin]), as: "token")
        try await queue.enqueue(id: "a", credential: "token")
        let held = try await wait("a", for: .held, in: queue)
        #expect(held.holdReason == .auth && held.lastError?.contains("changed the origin") == true)
        #expect(sender.attempts.isEmpty)
        await queue.stop()
    }

    @Test func `an adapter adds header fields and query items`() async throws {
        let sender = FakeSender { _ in .status(200) }
        let queue = try await directory.openQueue(sender, signal: changes)
        let adapter = TestAdapter { request in
            request.setValue("signed", forHTTPHeaderField: "X-Signature")
            request.url = URL(string: request.url!.absoluteString + "?k=v")
        }
        try await queue.register(try QueueCredential(adapter: adapter, origins: [Self.origin]), as: "token")
        try await queue.enqueue(id: "a", credential: "token")
        try await wait("a", for: .delivered, in: queue)
        let attempt = try #require(sender.attempts.first)
        #expect(attempt.value(of: "X-Signature") == "signed" && attempt.url == "https://example.com/a?k=v")
        #expect(try #require(try await queue.request("a")).summary.url == "https://example.com/a")
        await queue.stop()
    }

    @Test func `a response that repeats a password alone is stored without it`() async throws {
        let sender = FakeSender { _ in
            .status(302, [("Location", "https://other.example/pass%2Fword"), ("X-Request-Id", "pass/word")])
        }
        let queue = try await directory.openQueue(sender, signal: changes)
        let value = CredentialValue.basic(user: "user", password: "pass/word")
        try await queue.register(try QueueCredential(value, origins: [Self.origin]), as: "token")
        try await queue.enqueue(id: "a", credential: "token")
        try await wait("a", for: .dead, in: queue)
        let response = try #require(try await queue.request("a")?.response)
        #expect(Set(response.headers.map(\.value)) == ["https://other.example/REDACTED", "REDACTED"])
        await queue.stop()
    }

    @Test func `a response that repeats the request is evaluated first, and kept without the secret`()
        async throws
    {
        let secret = "secret+token/0123456789"
        let sender = FakeSender { attempt in
            let field = attempt.value(of: "Authorization") ?? ""
            let encoded = Data("x:\(field)".utf8).base64EncodedString()
            let fields = [("X-Request-Id", field), ("Content-Length", "999"), ("Etag", "v1")]
            return .status(200, fields, body: "\(field), \(encoded)")
        }
        let queue = try await directory.openQueue(sender, signal: changes)
        try await queue.register(try credential(TestToken(secret)), as: "token")
        var options = EnqueueOptions(id: "a")
        options.credential = "token"
        options.expectation = Expectation(rules: [.bodyPrefix("Bearer s")])
        let request = QueueRequest(method: "POST", url: Self.origin + "/a")
        let result = try await queue.send(request, options: options)
        guard case .delivered("a", 200, let body) = result else {
            Issue.record("\(result)")
            return
        }
        let response = try #require(try await queue.request("a")?.response)
        let text = String(decoding: response.body, as: UTF8.self)
        let isClean = text.hasPrefix("REDACTED, ") && text.components(separatedBy: "REDACTED").count == 3
        #expect(isClean, "\(text)")
        #expect(body == response.body && !response.isTruncated)
        let fields = Dictionary(uniqueKeysWithValues: response.headers.map { ($0.name, $0.value) })
        #expect(fields == ["X-Request-Id": "REDACTED"], "the others depend on the exact body")
        await queue.stop()
        // The middle of the secret, and of its Base64 form after `x:Bearer `.
        for part in ["token/01", "a2VuLzAx"] {
            #expect(try files(in: directory.path, containing: part).isEmpty, "\(part)")
        }
    }

    @Test func `secrets are removed from messages before these are cut`() async throws {
        let secret = "secret-" + String(repeating: "0123456789", count: 10)
        let path = String(repeating: "p", count: 160)
        let sender = FakeSender { attempt in
            attempt.url.hasSuffix("/a")
                ? .status(302, [("Location", "https://other.example/\(path)/\(secret)")])
                : .status(200, [("Content-Type", "text/\(String(repeating: "t", count: 60))\(secret)")])
        }
        let queue = try await directory.openQueue(sender, signal: changes)
        try await queue.register(try credential(TestToken(secret)), as: "token")
        for id in ["a", "b"] {
            var options = EnqueueOptions(id: id)
            options.credential = "token"
            options.expectation = Expectation(contentType: "application/json")
            let request = QueueRequest(method: "POST", url: "\(Self.origin)/\(id)")
            _ = try await queue.enqueue(request, options: options)
        }
        try await wait("a", for: .dead, in: queue)
        let delayed = try await waitForDelay(of: "b", in: queue)
        let errors = [try await queue.request("a")?.summary.lastError ?? "", delayed.lastError ?? ""]
        #expect(errors.allSatisfy { $0.contains("/REDACTED") || $0.contains("ttREDACTED") }, "\(errors)")
        await queue.stop()
        #expect(try files(in: directory.path, containing: "secret-").isEmpty)
    }

    @Test func `the body is not kept if the secret is short`() async throws {
        let sender = FakeSender { _ in .status(200, [("Content-Length", "4")], body: "body") }
        let queue = try await directory.openQueue(sender, signal: changes)
        try await queue.register(try credential(TestToken("1234")), as: "token")
        try await queue.enqueue(id: "a", credential: "token")
        try await wait("a", for: .delivered, in: queue)
        let response = try #require(try await queue.request("a")?.response)
        #expect(response.body.isEmpty && response.isTruncated && response.headers.isEmpty)
        await queue.stop()
    }

    @Test func `the secrets before and after a refresh are removed`() async throws {
        let token = TestToken("old-secret")
        let sender = FakeSender { attempt in
            attempt.value(of: "Authorization") == "Bearer old-secret"
                ? .status(401) : .status(200, body: "old-secret new-secret")
        }
        let queue = try await directory.openQueue(sender, signal: changes)
        let renewing = try credential(token) { token.set("new-secret") }
        try await queue.register(renewing, as: "token")
        try await queue.enqueue(id: "a", credential: "token")
        try await wait("a", for: .delivered, in: queue)
        #expect(try await queue.request("a")?.response?.body == Data("REDACTED REDACTED".utf8))
        await queue.stop()
    }

    // MARK: Faults

    @Test func `a request with an unknown credential is held until it is registered`() async throws {
        let sender = FakeSender { _ in .status(200) }
        let queue = try await directory.openQueue(sender, signal: changes)
        try await queue.enqueue(id: "a", credential: "token")
        try await queue.enqueue(id: "b")
        let held = try await wait("a", for: .held, in: queue)
        #expect(held.holdReason == .auth && held.lastError == "no credential has the name `token`")
        try await wait("b", for: .delivered, in: queue)
        try await queue.register(try credential(TestToken("t")), as: "other")
        #expect(try await queue.request("a")?.summary.state == .held)
        try await queue.register(try credential(TestToken("t")), as: "token")
        try await wait("a", for: .delivered, in: queue)
        await queue.stop()
    }

    @Test func `a provider that throws delays only its requests`() async throws {
        let sender = FakeSender { _ in .status(200) }
        let queue = try await directory.openQueue(sender, signal: changes)
        let faulty = try QueueCredential(origins: [Self.origin]) { () async throws -> CredentialValue in
            throw QueueError.leftToQueue("no token service")
        }
        try await queue.register(faulty, as: "token")
        // More failures than those of a server after which a lane closes.
        for number in 0..<8 { try await queue.enqueue(id: "a\(number)", credential: "token") }
        for number in 0..<8 {
            let request = try await waitForDelay(of: "a\(number)", in: queue)
            #expect(request.lastError?.hasPrefix("the credential `token` is unavailable: ") == true)
            #expect(request.deferrals == 1 && request.attempts == 0)
        }
        try await queue.enqueue(id: "b")
        try await wait("b", for: .delivered, in: queue)
        #expect(sender.attempts.map(\.id) == ["b"])
        await queue.stop()
    }

    @Test func `a provider that does not return delays only its requests, and is called only a few times`()
        async throws
    {
        let sender = FakeSender { _ in .status(200) }
        let queue = try await directory.openQueue(sender, signal: changes) {
            $0.credentialTimeout = .milliseconds(20)
        }
        let gate = Gate()
        let called = Recorder<String>()
        let adapter = TestAdapter { request in
            called.record("called")
            gate.wait()
        }
        try await queue.register(try QueueCredential(adapter: adapter, origins: [Self.origin]), as: "token")
        try await queue.enqueue(id: "a", credential: "token")
        let reason = "the provider of the credential `token` did not return within 20 milliseconds"
        #expect(try await waitForDelay(of: "a", in: queue).lastError == reason)
        try await queue.enqueue(id: "b", credential: "token")
        #expect(try await waitForDelay(of: "b", in: queue).lastError == reason)
        try await queue.enqueue(id: "c")
        try await wait("c", for: .delivered, in: queue)
        #expect(called.values.count <= 4 && sender.attempts.map(\.id) == ["c"])
        for _ in 0..<4 { gate.open() }
        await queue.stop()
    }

    @Test func `a new time limit of providers applies to the next call`() async throws {
        let queue = try await directory.openQueue(signal: changes)
        let gate = Gate()
        let adapter = TestAdapter { _ in gate.wait() }
        try await queue.register(try QueueCredential(adapter: adapter, origins: [Self.origin]), as: "token")
        var configuration = await queue.configuration
        configuration.credentialTimeout = .milliseconds(20)
        await queue.use(configuration)
        try await queue.enqueue(id: "a", credential: "token")
        let reason = "the provider of the credential `token` did not return within 20 milliseconds"
        #expect(try await waitForDelay(of: "a", in: queue).lastError == reason)
        for _ in 0..<4 { gate.open() }
        await queue.stop()
    }

    @Test func `a request is due when its withheld attempt can succeed`() async throws {
        let sender = FakeSender { _ in .withheld(WithheldReason(.retry, "later").delayed(by: .seconds(600))) }
        let queue = try await directory.openQueue(sender, signal: changes) {
            ($0.backoffBase, $0.backoffCap) = (.milliseconds(1), .seconds(7200))
        }
        let start = Date.now
        try await queue.enqueue(id: "a")
        let due = try #require(try await waitForDelay(of: "a", in: queue).due)
        #expect(due.timeIntervalSince(start) >= 599)
        await queue.stop()
    }

    // MARK: 401

    @Test func `one refresh serves all requests that were rejected at the same time`() async throws {
        let sender = FakeSender()
        let token = TestToken("old")
        let queue = try await directory.openQueue(sender, signal: changes)
        let mayEnd = Recorder<Bool>()
        let credential = try credential(token) {
            try await mayEnd.wait { !$0.isEmpty }
            token.refresh(to: "new")
        }
        try await queue.register(credential, as: "token")
        for number in 0..<4 { try await queue.enqueue(id: "\(number)", credential: "token") }
        var rejected: [Attempt] = []
        for _ in 0..<4 { rejected.append(await sender.nextAttempt()) }
        #expect(rejected.allSatisfy { $0.value(of: "Authorization") == "Bearer old" })
        for attempt in rejected { sender.answer(attempt, .status(401)) }
        mayEnd.record(true)
        for _ in 0..<4 {
            let attempt = await sender.nextAttempt()
            #expect(attempt.value(of: "Authorization") == "Bearer new")
            sender.answer(attempt, .status(200))
        }
        try await changes.until(queue) { $0[.delivered] == 4 }
        #expect(token.refreshes == 1)
        let request = try #require(try await queue.request("0"))
        #expect(request.summary.attempts == 1, "the repetition is part of the attempt")
        await queue.stop()
    }

    @Test func `a request that is rejected with a new value, too, is held until its credential changes`()
        async throws
    {
        let sender = FakeSender {
            $0.value(of: "Authorization") == "Bearer good" ? .status(200) : .status(401)
        }
        let token = TestToken("old")
        let queue = try await directory.openQueue(sender, signal: changes)
        try await queue.register(try credential(token) { token.refresh(to: "also-rejected") }, as: "token")
        try await queue.enqueue(id: "a", credential: "token")
        let held = try await wait("a", for: .held, in: queue)
        #expect(held.holdReason == .auth && held.lastError == "HTTP 401")
        #expect(held.attempts == 0 && held.deferrals == 1, "a rejected credential does not count")
        #expect(sender.attempts.count == 2 && token.refreshes == 1)
        token.set("good")
        try await queue.credentialsChanged(["token"])
        try await wait("a", for: .delivered, in: queue)
        await queue.stop()
    }

    @Test func `a credential that changes during an attempt releases the request that the attempt holds`()
        async throws
    {
        let sender = FakeSender()
        let queue = try await directory.openQueue(sender, signal: changes)
        try await queue.register(try credential(TestToken("old")), as: "token")
        try await queue.enqueue(id: "a", credential: "token")
        let attempt = await sender.nextAttempt()
        // The request is not held yet, so this releases none.
        try await queue.credentialsChanged(["token"])
        sender.answer(attempt, .status(401))
        let next = await sender.nextAttempt()
        sender.answer(next, .status(200))
        try await wait("a", for: .delivered, in: queue)
        await queue.stop()
    }

    @Test func `another credential releases a held request and no other hold`() async throws {
        let sender = FakeSender { $0.value(of: "Authorization") == nil ? .status(500) : .status(200) }
        let queue = try await directory.openQueue(sender, signal: changes)
        try await queue.register(try credential(TestToken("t")), as: "token")
        try await queue.enqueue(id: "a", credential: "unknown")
        try await queue.enqueue(id: "b")
        try await wait("a", for: .held, in: queue)
        _ = try await waitForDelay(of: "b", in: queue)
        try await queue.enqueue(id: "c", credential: "unknown")
        try await wait("c", for: .held, in: queue)
        _ = try await queue.hold(["c"])
        let results = try await queue.setCredential("token", of: ["a", "b", "c", "nobody"])
        #expect(results == [.done(.pending), .done(.pending), .done(.held), .unknown])
        try await wait("a", for: .delivered, in: queue)
        try await wait("b", for: .delivered, in: queue)
        #expect(try await queue.request("c")?.summary.holdReason == .user)
        #expect(try await queue.request("c")?.options.credential == "token")
        #expect(try await queue.setCredential("token", of: ["a"]) == [.refused(.delivered)])
        await #expect(throws: QueueError.self) { try await queue.setCredential("a/b", of: ["c"]) }
        await queue.stop()
    }

    // MARK: Requests with secrets

    /// Stores two requests and adds secrets to their rows. `b` has a credential.
    private func storeSecrets() async throws {
        let queue = try await directory.openQueue(signal: changes)
        try await queue.pause()
        try await queue.enqueue(id: "a")
        try await queue.enqueue(id: "b", credential: "token")
        await queue.stop()
        let headers = "X-Api-Key: old-secret\nX-Other: 1\n"
        try edit(
            directory,
            "UPDATE request SET url = url || '?token=old-secret&b=2', content = content || '\(headers)'"
        )
    }

    @Test func `an import removes secrets, and holds a request without a credential`() async throws {
        try await storeSecrets()
        let scratch = try ScratchDirectory()
        let source = try await directory.openQueue(signal: changes)
        var bytes: [UInt8] = []
        _ = try await source.export { bytes += $0 }
        let export = try scratch.write(bytes, to: "export")
        await source.stop()
        let other = TemporaryDirectory(marker: "credential")
        let target = try await other.openQueue(isStarted: false)
        #expect(try await target.importRequests(from: export).imported == 2)
        for (id, state) in [("a", QueuedRequest.State.held), ("b", .pending)] {
            let request = try #require(try await target.request(id))
            #expect(request.summary.state == state && request.summary.url == "https://example.com/\(id)?b=2")
            #expect(request.headers == [.init(name: "X-Other", value: "1")])
        }
        let held = try #require(try await target.request("a")).summary
        #expect(held.holdReason == .auth && held.lastError?.contains("give it a credential") == true)
        #expect(try await target.setCredential("token", of: ["a"]) == [.done(.pending)])
        await target.stop()
        #expect(try files(in: other.path, containing: "old-secret").isEmpty)
    }

    @Test func `a credential replaces the secrets in the URL of a stored request`() async throws {
        try await storeSecrets()
        let queue = try await directory.openQueue(signal: changes)
        #expect(try await queue.setCredential("token", of: ["a"]) == [.done(.pending)])
        let request = try #require(try await queue.request("a"))
        #expect(request.summary.url == "https://example.com/a?b=2" && request.options.credential == "token")
        await queue.stop()
    }

    // MARK: Export

    @Test func `an export contains the name, and an import restores it`() async throws {
        let queue = try await directory.openQueue(signal: changes)
        try await queue.pause()
        try await queue.enqueue(id: "a", credential: "token")
        let scratch = try ScratchDirectory()
        var bytes: [UInt8] = []
        _ = try await queue.export { bytes += $0 }
        let export = try scratch.write(bytes, to: "export")
        await queue.stop()
        let other = TemporaryDirectory(marker: "credential")
        let second = try await other.openQueue(isStarted: false)
        _ = try await second.importRequests(from: export)
        #expect(try await second.request("a")?.options.credential == "token")
        await second.stop()
    }

    @Test func `releasing many requests takes several short transactions`() async throws {
        let directory = TemporaryDirectory()
        let store = try await SQLiteQueueStore(directory: directory.path)
        let count = 2 * StoreTransaction.releasedAtOnce + 1
        _ = try await store.enqueue(try (0..<count).map { try new("r\($0)") { $0.credential = "api" } })
        while case let claimed = try await store.claimAll(), !claimed.isEmpty {
            for request in claimed { try await store.conclude(request, .held(.auth)) }
        }
        #expect(try await store.counts()[.held] == count)
        let commits = store.commitDurations.count
        try await store.releaseRequests(heldForCredential: "api", triedBefore: nil)
        #expect(store.commitDurations.count - commits == 3)
        #expect(try await store.counts()[.pending] == count)
        await store.close()
    }
}
