internal import ClientCore
internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

/// The adapter and the interceptor of the queue's session are code of the program that may fail or never return.
@Suite(.timeLimit(.minutes(5))) struct AdapterCallTests {
    private let directory = TemporaryDirectory(marker: "adapter")
    private let changes = ChangeSignal()
    private let clock = ManualClock()

    private func open(_ session: SessionManager) async throws -> OfflineQueue {
        let sender = SessionSender(session: session, adapterTimeout: .seconds(30), clock: clock)
        return try await directory.openQueue(sender, signal: changes)
    }

    private func post(_ id: String, to url: String, _ queue: OfflineQueue) async throws {
        _ = try await queue.enqueue(QueueRequest(method: "POST", url: url), options: EnqueueOptions(id: id))
    }

    /// Requests to `slow` wait for ever, and those to `localhost` are delivered.
    private func expectPostponed(_ session: SessionManager, calls: Recorder<String>) async throws {
        let server = try ScriptedServer { _ in .respond("thanks") }
        let queue = try await open(session)
        for number in 0..<12 { try await post("slow\(number)", to: "\(server.url)/\(number)", queue) }
        try await calls.wait { !$0.isEmpty }
        try await clock.sleeps.wait { !$0.isEmpty }
        clock.advance(by: .seconds(30))
        try await changes.until { try await queue.request("slow0")?.summary.lastError != nil }
        let other = server.url.replacingOccurrences(of: "127.0.0.1", with: "localhost")
        try await post("other", to: other + "/", queue)
        let result = try await queue.result(of: "other", within: .seconds(60))
        #expect(result?.summary.state == .delivered)
        let slow = try #require(try await queue.request("slow0"))
        #expect(slow.summary.state == .pending && slow.summary.attempts == 0)
        #expect(
            slow.summary.lastError
                == "the adapter of the queue's session did not return within 30 seconds"
        )
        #expect(calls.values.filter { $0 == "127.0.0.1" }.count < 12)
        await queue.stop()
        #expect(server.requests.count == 1)
    }

    /// Expects that a request is adapted. A call waits up to 50 ms for its turn and for the adapter, which may not be
    /// enough on a busy machine.
    private func adapt(_ request: URLRequest, _ calls: AdapterCalls) async throws {
        while (try? await calls.adapted(request)) == nil { try Task.checkCancellation() }
    }

    @Test func `an adapter that never returns delays only the requests to its host`() async throws {
        let (calls, end) = (Recorder<String>(), DispatchSemaphore(value: 0))
        let session = SessionManager()
        session.adapter = TestAdapter { request in
            let host = request.url?.host ?? ""
            calls.record(host)
            if host == "127.0.0.1" { end.wait() }
        }
        try await expectPostponed(session, calls: calls)
        for _ in 0..<12 { end.signal() }
    }

    @Test func `an interceptor that never returns delays only the requests to its host`() async throws {
        let (calls, (end, ending)) = (Recorder<String>(), AsyncStream.makeStream(of: Void.self))
        let session = SessionManager()
        session.interceptor = WaitingInterceptor(calls: calls, end: end)
        try await expectPostponed(session, calls: calls)
        ending.finish()
    }

    @Test func `a request is adapted although an earlier call never returns`() async throws {
        let (end, isWaiting) = (DispatchSemaphore(value: 0), Recorder<Bool>())
        let session = SessionManager()
        session.adapter = TestAdapter { request in
            guard isWaiting.values.isEmpty else { return }
            isWaiting.record(true)
            end.wait()
        }
        let calls = AdapterCalls(of: session, timeout: .milliseconds(50))
        let request = URLRequest(url: URL(string: "http://127.0.0.1/")!)
        await #expect(throws: WithheldReason.self) { try await calls.adapted(request) }
        #expect(try await calls.adapted(request).url == request.url)
        #expect(isWaiting.values.count == 1)
        end.signal()
    }

    @Test func `hosts for which the adapter does not return do not delay other hosts`() async throws {
        let (end, hung) = (DispatchSemaphore(value: 0), 20)
        let session = SessionManager()
        session.adapter = TestAdapter { if $0.url?.host != "fast.example" { end.wait() } }
        let calls = AdapterCalls(of: session, timeout: .milliseconds(50))
        func request(_ host: String) -> URLRequest { URLRequest(url: URL(string: "http://\(host)/")!) }
        for number in 0..<hung {
            await #expect(throws: WithheldReason.self) {
                try await calls.adapted(request("slow\(number).example"))
            }
        }
        try await adapt(request("fast.example"), calls)
        for _ in 0..<hung { end.signal() }
    }

    @Test func `an attempt that is cancelled while it is adapted does not postpone others`() async throws {
        let (end, isWaiting) = (DispatchSemaphore(value: 0), Recorder<Bool>())
        let session = SessionManager()
        session.adapter = TestAdapter { _ in
            guard isWaiting.values.isEmpty else { return }
            isWaiting.record(true)
            end.wait()
        }
        let clock = ManualClock()
        let calls = AdapterCalls(of: session, timeout: .seconds(30), clock: clock)
        let request = URLRequest(url: URL(string: "http://127.0.0.1/")!)
        let attempt = Task { try await calls.adapted(request) }
        try await isWaiting.wait { $0.count == 1 }
        attempt.cancel()
        _ = await attempt.result
        let next = Task { try await calls.adapted(request) }
        try await poll { calls.calls.count(of: "127.0.0.1").waiting == 1 }
        clock.advance(by: .seconds(30))
        let withheld = await #expect(throws: WithheldReason.self) { try await next.value }
        #expect(withheld?.delay == .zero, "the request waits for the call, and no longer")
        end.signal()
        try await adapt(request, calls)
    }

    @Test func `an adapter that throws postpones the request without counting the attempt`() async throws {
        struct Refusal: Error {}
        let server = try ScriptedServer { _ in .respond("thanks") }
        let session = SessionManager()
        session.adapter = TestAdapter { _ in throw Refusal() }
        let queue = try await open(session)
        try await post("a", to: server.url + "/", queue)
        try await changes.until { try await queue.request("a")?.summary.lastError != nil }
        let request = try #require(try await queue.request("a"))
        #expect(request.summary.state == .pending && request.summary.attempts == 0)
        #expect(request.summary.lastError?.contains("Refusal") == true)
        await queue.stop()
        #expect(server.requests.isEmpty)
    }

    /// In a transfer, the first error makes a request dead, and the second one holds it.
    private static let transferErrors: [any Error] = [
        AFError.invalidURL(url: "x"), URLError(.cancelled), CancellationError(),
    ]

    @Test(arguments: transferErrors)
    func `an error of the adapter neither ends nor holds a request`(error: any Error) async {
        let session = SessionManager()
        session.adapter = TestAdapter { _ in throw error }
        let attempt = Attempt(
            id: "once",
            method: "POST",
            url: "http://127.0.0.1:9/",
            headers: [],
            body: .none,
            mayBeSentTwice: false
        )
        let outcome = await SessionSender(session: session).send(attempt)
        guard case .withheld(let withheld) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(withheld.reason.hasPrefix("the adapter of the queue's session failed: "))
        let context = AttemptContext(
            origin: Origin(scheme: "http", host: "127.0.0.1", port: 9),
            mayBeSentTwice: false,
            hasKey: false,
            gateIsDown: false,
            accept: nil
        )
        let classification = FailureTable.classify(outcome, of: context, now: start)
        #expect(classification.verdict == .retry(countsAsAttempt: false))
    }

    @Test func `a bound request is not sent to another host than that of its binding`() async throws {
        let server = try ScriptedServer { _ in .respond("thanks") }
        let session = SessionManager()
        let isOther = Recorder<Bool>()
        session.adapter = TestAdapter { request in
            let url = request.url?.absoluteString ?? ""
            guard !isOther.values.isEmpty else { return }
            request.url = URL(string: url.replacingOccurrences(of: "127.0.0.1", with: "localhost"))
        }
        let source = try #require(IPAddress("127.0.0.1"))
        func send(_ binding: SocketBinding?) async -> AttemptOutcome {
            let attempt = Attempt(
                id: "a",
                method: "POST",
                url: server.url + "/",
                headers: [],
                body: .none,
                mayBeSentTwice: true,
                binding: binding
            )
            return await SessionSender(session: session).send(attempt)
        }
        let binding = SocketBinding(interfaceIndex: 0, source: source, family: .ipv4)
        guard case .response = await send(binding) else {
            Issue.record("the adapter kept the host")
            return
        }
        isOther.record(true)
        guard case .response = await send(nil) else {
            Issue.record("the request is not bound")
            return
        }
        guard case .withheld(let withheld) = await send(binding) else {
            Issue.record("the request is bound, and the adapter changed its host")
            return
        }
        #expect(withheld.remedy == .retry && withheld.reason.contains("changed the host"))
        #expect(server.requests.count == 2)
    }

    @Test func `an attempt is not sent if it must not be sent any more after it was adapted`() async throws {
        let server = try ScriptedServer { _ in .respond("thanks") }
        let session = SessionManager()
        let adapted = Recorder<String>()
        session.adapter = TestAdapter { adapted.record($0.url?.path ?? "") }
        let attempt = Attempt(
            id: "a",
            method: "POST",
            url: server.url + "/a",
            headers: [],
            body: .none,
            mayBeSentTwice: true,
            mayStillBeSent: { adapted.values.isEmpty }
        )
        guard case .failure(let failure) = await SessionSender(session: session).send(attempt) else {
            Issue.record("the attempt was sent")
            return
        }
        #expect(failure.code == 42 && failure.phase == .resolve)
        #expect(adapted.values == ["/a"] && server.requests.isEmpty)
    }

    @Test func `the credential is removed from an error of the adapter`() async throws {
        struct Refusal: Error { let field: String }
        let session = SessionManager()
        session.adapter = TestAdapter {
            throw Refusal(field: $0.value(forHTTPHeaderField: "Authorization") ?? "")
        }
        let queue = try await open(session)
        let credential = try QueueCredential(.bearer("credential-secret"), origins: ["http://127.0.0.1:9"])
        try await queue.register(credential, as: "token")
        var options = EnqueueOptions(id: "a")
        options.credential = "token"
        _ = try await queue.enqueue(
            QueueRequest(method: "POST", url: "http://127.0.0.1:9/"),
            options: options
        )
        try await changes.until { try await queue.request("a")?.summary.lastError != nil }
        let error = try #require(try await queue.request("a")?.summary.lastError)
        #expect(error.contains("REDACTED") && !error.contains("credential-secret"), "\(error)")
        await queue.stop()
    }

    @Test func `what the session and its adapter add is not stored with the response`() async throws {
        let location = ScriptedServer.Header("Location", "/t/adapter-secret")
        let server = try ScriptedServer { request in
            let fields = ["Authorization", "X-Auth-Token", "Cookie"].flatMap(request.values(of:))
            let body = Array(fields.joined(separator: ",").utf8)
            return .respond(status: 404, headers: [location], body: body)
        }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpAdditionalHeaders = [
            "X-Auth-Token": "session-secret", "Cookie": "sid=cookie-secret", "X-Client": "a-client",
        ]
        let session = SessionManager(configuration: configuration)
        session.adapter = TestAdapter {
            $0.setValue("Bearer adapter-secret", forHTTPHeaderField: "Authorization")
        }
        let queue = try await open(session)
        try await post("a", to: server.url + "/", queue)
        try await changes.until { try await queue.request("a")?.summary.state == .dead }
        #expect(server.requests.first?.values(of: "Authorization") == ["Bearer adapter-secret"])
        let request = try #require(try await queue.request("a"))
        let fields = request.response?.headers.map(\.value) ?? []
        #expect(fields.contains { $0.contains("REDACTED") }, "\(fields)")
        #expect(!"\(fields) \(request.summary.lastError ?? "")".contains("adapter-secret"))
        #expect(request.response?.body == Data("REDACTED,REDACTED,REDACTED".utf8))
        await queue.stop()
        #expect(try files(in: directory.path, containing: "-secret").isEmpty)
    }

    @Test(arguments: [true, false])
    func `a body that the client does not decode is kept only if nothing was added`(adapts: Bool) async throws
    {
        let coding = ScriptedServer.Header("Content-Encoding", "gzip")
        let body = Array("zipped".utf8)
        let server = try ScriptedServer { _ in .respond(status: 404, headers: [coding], body: body) }
        // Without default fields, the session does not send `Accept-Encoding`.
        let session = SessionManager(configuration: .ephemeral)
        if adapts {
            session.adapter = TestAdapter {
                $0.setValue("Bearer adapter-secret", forHTTPHeaderField: "Authorization")
            }
        }
        let queue = try await open(session)
        try await post("a", to: server.url + "/", queue)
        try await changes.until { try await queue.request("a")?.summary.state == .dead }
        let response = try #require(try await queue.request("a")?.response)
        #expect(response.body == Data(adapts ? "".utf8 : "zipped".utf8) && response.isTruncated == adapts)
        await queue.stop()
    }
}

/// An interceptor whose adaptation of requests to 127.0.0.1 ends when the stream does.
private struct WaitingInterceptor: RequestInterceptor {
    let calls: Recorder<String>
    let end: AsyncStream<Void>

    func adapt(_ urlRequest: URLRequest, for session: SessionManager) async throws -> URLRequest {
        let host = urlRequest.url?.host ?? ""
        calls.record(host)
        if host == "127.0.0.1" {
            // A detached task, because the wait must ignore the cancellation of the call.
            await Task.detached { for await _ in end {} }.value
        }
        return urlRequest
    }

    func retry(_ request: Request, for session: SessionManager, dueTo error: any Error) async -> RetryResult {
        .doNotRetry
    }
}
