internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// Sessions whose requests are stored in a queue.
@Suite(.timeLimit(.minutes(5))) struct QueuingSessionTests {
    private let calls: QueuedCalls

    init() async throws {
        calls = try await QueuedCalls()
    }

    // MARK: Failed requests

    @Test func `all failed requests of a session are stored, if the program wants that`() async throws {
        calls.session.queuesFailedRequests(in: calls.queue) { $0.url?.path == "/readings" }
        let other = await calls.session.request("http://127.0.0.1:1/other").response()
        #expect((other.error as? URLError)?.code == .cannotConnectToHost)
        async let response = calls.session.request(calls.post("x")).responseString()
        let attempt = await calls.sender.nextAttempt()
        calls.sender.answer(attempt, .status(200, body: "late"))
        #expect(await response.value == "late")
        calls.session.queuesFailedRequests(in: nil)
        #expect(await calls.session.request(calls.post("x")).response().error is URLError)
        await calls.queue.stop()
    }

    @Test func `all attempts of a request carry the key of the first one`() async throws {
        var options = OfflineOptions()
        options.includesAmbiguousFailures = true
        calls.session.queuesFailedRequests(in: calls.queue, options: options)
        let server = try ScriptedServer { _ in .close }
        calls.session.request(calls.post("x", to: server.url)).response { _ in }
        let attempt = await calls.sender.nextAttempt()
        let first = try #require(server.requests[0].values(of: "Idempotency-Key").first)
        #expect(attempt.headers.filter { $0.name == "Idempotency-Key" }.map(\.value) == [first])
        let second = calls.session.request(calls.post("y", to: server.url))
        #expect(second.request?.value(forHTTPHeaderField: "Idempotency-Key") != first)
        await calls.queue.stop()
    }

    @Test func `idempotent requests and requests with a key get no other key`() async throws {
        calls.session.startRequestsImmediately = false
        calls.session.queuesFailedRequests(in: calls.queue)
        let get = calls.session.request(calls.url)
        #expect(get.request?.value(forHTTPHeaderField: "Idempotency-Key") == nil)
        let post = calls.session.request(calls.url, method: .post, headers: ["Idempotency-Key": "own"])
        #expect(post.request?.value(forHTTPHeaderField: "Idempotency-Key") == "own")
        await calls.queue.stop()
    }

    @Test func `a download fails with its own error`() async throws {
        calls.session.queuesFailedRequests(in: calls.queue)
        let response = await calls.session.download(calls.url).response()
        #expect((response.error as? URLError)?.code == .cannotConnectToHost)
        await calls.queue.stop()
    }

    @Test func `the queue's own session may store its failed requests in the queue`() async throws {
        let directory = TemporaryDirectory()
        // No other test uses this address and port, so nothing listens there yet.
        let (address, port, session) = ("127.17.0.2", UInt16(8017), SessionManager())
        var configuration = OfflineQueue.Configuration(directory: directory.path)
        (configuration.backoffBase, configuration.backoffCap) = (.milliseconds(1), .milliseconds(2))
        let queue = try await OfflineQueue(configuration: configuration, session: session)
        try await queue.start()
        session.queuesFailedRequests(in: queue)
        let receipts = Recorder<String>()
        async let response = session.request(calls.post("x", to: "http://\(address):\(port)/"))
            .onQueued(queue: calls.handlers) { receipts.record($0.id) }.responseString()
        try await receipts.wait { !$0.isEmpty }
        let back = try ScriptedServer(address: address, port: port) { _ in .respond("late") }
        #expect(await response.value == "late")
        #expect(try await queue.counts[.delivered] == 1)
        #expect(back.requests.count == 1)
        await queue.stop()
        await calls.queue.stop()
    }

    // MARK: Background sessions

    @Test func `a background session stores its requests before they are sent`() async throws {
        let server = try ScriptedServer { _ in .respond("direct") }
        let session = SessionManager.background(queue: calls.queue, options: EnqueueOptions(isFIFO: true))
        let receipts = Recorder<Receipt>()
        async let response = session.request(calls.post("x", to: server.url)).validate()
            .onQueued(queue: calls.handlers) { receipts.record($0) }.responseString()
        let attempt = await calls.sender.nextAttempt()
        try await receipts.wait { !$0.isEmpty }
        #expect(try await calls.queue.request(attempt.id)?.summary.isFIFO == true)
        calls.sender.answer(attempt, .status(200, body: "from the queue"))
        #expect(await response.value == "from the queue")
        #expect(server.requests.isEmpty)
        await calls.queue.stop()
    }

    @Test func `a background session stores its requests in the order in which they were created`()
        async throws
    {
        calls.gate.turn(.notReachable)
        let session = SessionManager.background(queue: calls.queue, options: EnqueueOptions(isFIFO: true))
        let stored = Recorder<Int>()
        let refused = Recorder<Bool>()
        for number in 0..<200 {
            // Every tenth request is refused, so its transaction is repeated without it.
            let headers = number % 10 == 9 ? ["Authorization": "secret"] : [:]
            let upload = session.upload(Data(count: 1 + number), to: calls.url, headers: headers)
            upload.onQueued(queue: calls.handlers) { _ in stored.record(number) }
            if number % 10 == 9 { upload.response { refused.record($0.error is QueueError) } }
        }
        try await stored.wait { $0.count == 180 }
        var query = RequestQuery(limit: 1000)
        query.states = [.pending]
        let page = try await calls.queue.list(query)
        let bodies = page.requests.sorted { $0.sequence < $1.sequence }.map(\.bodyBytes)
        let expected: [Int64] = (0..<200).filter { $0 % 10 != 9 }.map { 1 + $0 }
        #expect(bodies == expected)
        for number in [0, 57, 199] { #expect(stored.values.contains(number) == (number % 10 != 9)) }
        await calls.queue.stop()
    }

    @Test func `a refused request does not affect an uploaded stream that waits with it`() async throws {
        calls.gate.turn(.notReachable)
        _ = try await calls.queue.enqueue(
            QueueRequest(method: "POST", url: calls.url),
            options: EnqueueOptions(id: "known")
        )
        var options = EnqueueOptions()
        options.dependencies = ["unknown"]
        let refused = SessionManager.background(queue: calls.queue, options: options)
        let error = await refused.request(calls.post("x")).response().error as? QueueError
        #expect(error?.code == .unknownDependency)
        let session = SessionManager.background(queue: calls.queue)
        let stored = Recorder<String>()
        for number in 0..<20 {
            let upload =
                number == 10
                ? session.upload(URL(fileURLWithPath: "/nonexistent"), to: calls.url)
                : session.upload(InputStream(data: Data(count: 300_000 + number)), to: calls.url)
            upload.onQueued(queue: calls.handlers) { stored.record($0.id) }
        }
        try await stored.wait { $0.count == 19 }
        let listed = try await calls.queue.list(RequestQuery(states: [.pending], limit: 100)).requests
        let streams = listed.map(\.bodyBytes).filter { $0 > 0 }.sorted()
        let expected: [Int64] = (0..<20).filter { $0 != 10 }.map { 300_000 + $0 }
        #expect(streams == expected)
        #expect(await calls.queue.stagedBodies().isEmpty)
        await calls.queue.stop()
    }

    @Test func `a quoted key of the session is the key of the stored request`() async throws {
        var options = EnqueueOptions()
        options.idempotencyKey.isQuoted = true
        let session = SessionManager.background(queue: calls.queue, options: options)
        let request = session.request(calls.post("x"))
        request.response { _ in }
        let attempt = await calls.sender.nextAttempt()
        let key = attempt.headers.filter { $0.name == "Idempotency-Key" }.map(\.value)
        #expect(key == [request.request?.value(forHTTPHeaderField: "Idempotency-Key")])
        #expect(key[0].hasPrefix("\"") && key[0].hasSuffix("\""))
        await calls.queue.stop()
    }

    @Test func `a request that the adapter rejects is not stored`() async throws {
        struct Rejection: Error {}
        struct Adapter: RequestAdapter {
            func adapt(_ urlRequest: URLRequest) throws -> URLRequest { throw Rejection() }
        }
        let session = SessionManager.background(queue: calls.queue)
        session.adapter = Adapter()
        #expect(await session.request(calls.post("x")).response().error is Rejection)
        #expect(try await calls.queue.counts == QueueCounts())
        await calls.queue.stop()
    }

    @Test func `a background session stays one`() async throws {
        let session = SessionManager.background(queue: calls.queue)
        session.queuesFailedRequests(in: nil)
        session.request(calls.post("x")).response { _ in }
        #expect(await calls.sender.nextAttempt().method == "POST")
        await calls.queue.stop()
    }

    @Test func `a background session reports why the queue refuses a request`() async throws {
        let session = SessionManager.background(queue: calls.queue)
        let secret = await session.request(calls.url, headers: ["Authorization": "Bearer x"]).response()
        #expect((secret.error as? QueueError)?.code == .secretHeader)
        let download = await session.download(calls.url).response()
        #expect((download.error as? QueueError)?.code == .invalidOption)
        await calls.queue.stop()
        #expect((await session.request(calls.url).response().error as? QueueError)?.code == .stopped)
    }

    @Test func `the session does not retain the queue`() async throws {
        let isReleased = Recorder<Bool>()
        var queue: OfflineQueue? = try await OfflineQueue(
            configuration: OfflineQueue.Configuration(directory: TemporaryDirectory().path),
            sender: OwnedSender(inner: calls.sender, captured: Captured { isReleased.record(true) }),
            gate: calls.gate
        )
        let session = SessionManager.background(queue: try #require(queue))
        await queue?.stop()
        weak let released = queue
        queue = nil
        // The queue retains its sender. Tasks of the queue that have just ended may retain the queue a moment longer.
        try await isReleased.wait { !$0.isEmpty }
        #expect(released == nil)
        let error = try #require(await session.request(calls.url).response().error as? QueueError)
        #expect(error.code == .stopped)
        await calls.queue.stop()
    }
}

/// A sender that retains an object.
private struct OwnedSender: AttemptSender {
    let inner: FakeSender
    let captured: Captured

    func send(_ attempt: Attempt) async -> AttemptOutcome { await inner.send(attempt) }

    func dropConnections() async { await inner.dropConnections() }
}
