internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// Requests of a session that fail because nothing listens at their address, and that a queue takes over.
@Suite(.timeLimit(.minutes(5))) struct QueuedCallTests {
    private let calls: QueuedCalls

    init() async throws {
        calls = try await QueuedCalls()
    }

    private func post(_ body: String = "reading") -> DataRequest {
        calls.session.request(calls.post(body))
    }

    @Test func `a failed request is stored and finished with the response that the queue receives`()
        async throws
    {
        let receipts = Recorder<Receipt>()
        let request = post().validate().queueIfOffline(calls.queue)
            .onQueued(queue: calls.handlers) { receipts.record($0) }
        async let response = request.responseString()
        let attempt = await calls.sender.nextAttempt()
        #expect(attempt.method == "POST" && attempt.url == calls.url && attempt.bytes == Data("reading".utf8))
        try await receipts.wait { !$0.isEmpty }
        #expect(receipts.values.map(\.id) == [attempt.id])
        #expect(request.state == .queued)
        calls.sender.answer(attempt, .status(201, [("X-Server", "real")], body: "stored"))
        #expect(await response.value == "stored")
        #expect(await response.response?.statusCode == 201)
        #expect(await response.response?.value(forHTTPHeaderField: "x-server") == "real")
        #expect(request.state == .finished && request.response?.statusCode == 201)
        #expect(receipts.values.count == 1)
        await calls.queue.stop()
    }

    @Test func `the queue keeps the version of HTTP that the request has chosen`() async throws {
        let options = RequestOptions(httpVersion: .http1)
        let request = calls.session.request(calls.post("reading").with(options)).queueIfOffline(calls.queue)
        request.response { _ in }
        let id = await calls.sender.nextAttempt().id
        #expect(try await calls.queue.request(id)?.options.httpVersion == .http1)
        await calls.queue.stop()
    }

    @Test func `a handler for a stored request is called immediately if it is added later`() async throws {
        let receipts = Recorder<String>()
        let request = post().queueIfOffline(calls.queue)
            .onQueued(queue: calls.handlers) { receipts.record($0.id) }
        request.response { _ in }
        try await receipts.wait { !$0.isEmpty }
        request.onQueued(queue: calls.handlers) { receipts.record($0.id) }
        try await receipts.wait { $0.count == 2 }
        #expect(receipts.values[0] == receipts.values[1])
        await calls.queue.stop()
    }

    @Test func `the request is stored as it was before adaptation`() async throws {
        struct Adapter: RequestAdapter {
            func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
                var request = urlRequest
                request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
                return request
            }
        }
        calls.session.adapter = Adapter()
        let request = post().queueIfOffline(calls.queue)
        request.response { _ in }
        let attempt = await calls.sender.nextAttempt()
        #expect(request.request?.value(forHTTPHeaderField: "Authorization") == "Bearer secret")
        #expect(!attempt.headers.contains { $0.name == "Authorization" })
        await calls.queue.stop()
    }

    @Test
    func `the handler receives all header fields, of which the store keeps those that contain no secret`()
        async throws
    {
        async let response = post().queueIfOffline(calls.queue).responseString()
        let attempt = await calls.sender.nextAttempt()
        let fields = [
            ("Set-Cookie", "session=secret"), ("X-Auth-Token", "secret"), ("Content-Type", "text/plain"),
        ]
        calls.sender.answer(attempt, .status(200, fields, body: "done"))
        let head = await response.response
        #expect(head?.value(forHTTPHeaderField: "X-Auth-Token") == "secret")
        #expect(head?.value(forHTTPHeaderField: "Set-Cookie") == "session=secret")
        let stored = try #require(try await calls.queue.request(attempt.id)?.response)
        #expect(stored.headers == [.init(name: "Content-Type", value: "text/plain")])
        await calls.queue.stop()
    }

    @Test func `the handler receives more of the response than the store keeps`() async throws {
        let body = String(repeating: "x", count: 100_000)
        async let response = post().queueIfOffline(calls.queue).responseString()
        let attempt = await calls.sender.nextAttempt()
        #expect(attempt.responseLimit == 16 << 20)
        calls.sender.answer(attempt, .status(200, body: body))
        #expect(await response.value == body)
        let stored = try #require(try await calls.queue.request(attempt.id)?.response)
        #expect(stored.body.count == 65_536 && stored.isTruncated)
        await calls.queue.stop()
    }

    @Test func `a response that is lost after its status is an error with this status`() async throws {
        async let response = post().queueIfOffline(calls.queue).responseData()
        let attempt = await calls.sender.nextAttempt()
        let lost = AttemptFailure(code: 56, phase: .response, status: 201, message: "reset")
        calls.sender.answer(attempt, .failure(lost))
        #expect((await response.error as? URLError)?.code == .networkConnectionLost)
        #expect(await response.response?.statusCode == 201)
        #expect(try await calls.state(of: attempt.id) == .delivered)
        await calls.queue.stop()
    }

    @Test func `a request whose attempts are used up fails with its last response`() async throws {
        var options = OfflineOptions()
        options.enqueue.maximumAttempts = 1
        async let response = post().queueIfOffline(calls.queue, options).responseString()
        let attempt = await calls.sender.nextAttempt()
        calls.sender.answer(attempt, .status(503, body: "busy"))
        #expect((await response.error as? QueueError)?.code == .dead)
        #expect(await response.response?.statusCode == 503)
        #expect(await response.data == Data("busy".utf8))
        await calls.queue.stop()
    }

    @Test func `a replaced request fails, and its successor is delivered`() async throws {
        calls.gate.turn(.notReachable)
        var options = OfflineOptions()
        options.enqueue.replaceKey = "state"
        let receipts = Recorder<String>()
        async let first = post("1").queueIfOffline(calls.queue, options)
            .onQueued(queue: calls.handlers) { receipts.record($0.id) }.response()
        try await receipts.wait { $0.count == 1 }
        async let second = post("2").queueIfOffline(calls.queue, options).responseString()
        #expect((await first.error as? QueueError)?.code == .cancelled)
        calls.gate.turn(.reachable(generation: 2))
        let attempt = await calls.sender.nextAttempt()
        #expect(attempt.bytes == Data("2".utf8))
        calls.sender.answer(attempt, .status(200, body: "second"))
        #expect(await second.value == "second")
        await calls.queue.stop()
    }

    @Test(arguments: [(3, URLError.networkConnectionLost), (16 << 20, .dataLengthExceedsMaximum)])
    func `a response whose body was cut is an error`(count: Int, code: URLError.Code) async throws {
        async let response = post().queueIfOffline(calls.queue).responseData()
        let attempt = await calls.sender.nextAttempt()
        let body = Data(repeating: 0x78, count: count)
        calls.sender.answer(attempt, .response(status: 200, headers: [], body: body, isTruncated: true))
        #expect((await response.error as? URLError)?.code == code)
        #expect(await response.response?.statusCode == 200)
        #expect(try await calls.state(of: attempt.id) == .delivered)
        await calls.queue.stop()
    }

    @Test func `a validator can reject the response, which the queue has delivered`() async throws {
        async let response = post().validate(contentType: ["application/json"]).queueIfOffline(calls.queue)
            .responseString()
        let attempt = await calls.sender.nextAttempt()
        calls.sender.answer(attempt, .status(200, [("Content-Type", "text/plain")], body: "x"))
        #expect((await response.error as? AFError)?.isResponseValidationError == true)
        #expect(try await calls.state(of: attempt.id) == .delivered)
        await calls.queue.stop()
    }

    @Test func `a request that the server refuses fails with its response`() async throws {
        async let response = post().queueIfOffline(calls.queue).responseString()
        let attempt = await calls.sender.nextAttempt()
        calls.sender.answer(attempt, .status(404, body: "no such sensor"))
        let error = try #require(await response.error as? QueueError)
        #expect(error == .dead(attempt.id, "HTTP 404"))
        #expect(await response.response?.statusCode == 404)
        #expect(await response.data == Data("no such sensor".utf8))
        await calls.queue.stop()
    }

    // MARK: Ends without a response

    @Test func `a request that is cancelled in the queue fails`() async throws {
        calls.gate.turn(.notReachable)
        let receipts = Recorder<String>()
        async let response = post().queueIfOffline(calls.queue)
            .onQueued(queue: calls.handlers) { receipts.record($0.id) }.response()
        try await receipts.wait { !$0.isEmpty }
        let id = receipts.values[0]
        _ = try await calls.queue.cancel([id])
        let error = try #require(await response.error as? QueueError)
        #expect(error.code == .cancelled && error.requestID == id)
        await calls.queue.stop()
    }

    @Test(arguments: [false, true])
    func `cancelling the request cancels it in the queue, unless it is detached`(isDetached: Bool)
        async throws
    {
        calls.gate.turn(.notReachable)
        let receipts = Recorder<String>()
        let request = post().queueIfOffline(calls.queue, OfflineOptions(detached: isDetached))
            .onQueued(queue: calls.handlers) { receipts.record($0.id) }
        async let response = request.response()
        try await receipts.wait { !$0.isEmpty }
        request.cancel()
        #expect((await response.error as? URLError)?.code == .cancelled)
        #expect(request.state == .cancelled)
        if !isDetached { _ = try await calls.queue.result(of: receipts.values[0]) }
        #expect(try await calls.state(of: receipts.values[0]) == (isDetached ? .pending : .cancelled))
        await calls.queue.stop()
    }

    @Test func `cancelling a request whose id the queue already knew leaves the stored request in the queue`()
        async throws
    {
        calls.gate.turn(.notReachable)
        let receipts = Recorder<Receipt.Outcome>()
        @Sendable func send(_ id: String) -> DataRequest {
            post().queueIfOffline(calls.queue, OfflineOptions(EnqueueOptions(id: id)))
                .onQueued(queue: calls.handlers) { receipts.record($0.outcome) }
        }
        async let first = send("shared").responseString()
        try await receipts.wait { $0 == [.accepted] }
        let repetition = send("shared")
        async let second = repetition.response()
        try await receipts.wait { $0 == [.accepted, .known] }
        repetition.cancel()
        #expect((await second.error as? URLError)?.code == .cancelled)
        // By the time that another request is stored, the cancellation has reached the queue.
        async let last = send("last").response()
        try await receipts.wait { $0.count == 3 }
        #expect(try await calls.state(of: "shared") == .pending)
        calls.gate.turn(.reachable(generation: 2))
        let attempt = await calls.sender.nextAttempt()
        #expect(attempt.id == "shared")
        calls.sender.answer(attempt, .status(200, body: "stored"))
        #expect(await first.value == "stored")
        await calls.queue.stop()
        #expect((await last.error as? QueueError)?.code == .leftToQueue)
    }

    @Test(arguments: [false, true])
    func `a request that ends while it is being stored is cancelled in the queue`(isDropped: Bool)
        async throws
    {
        let (stored, ended) = (Recorder<Bool>(), Recorder<Bool>())
        let calls = try await QueuedCalls {
            stored.record(true)
            try await ended.wait { !$0.isEmpty }
        }
        calls.gate.turn(.notReachable)
        var session: SessionManager? = SessionManager()
        let options = OfflineOptions(EnqueueOptions(id: "delayed"), detached: true)
        let request = try #require(session).request(calls.post("x")).queueIfOffline(calls.queue, options)
        async let response = request.response()
        try await stored.wait { !$0.isEmpty }
        if isDropped { session = nil } else { request.cancel() }
        let error = await response.error
        #expect(isDropped ? (error as? AFError)?.isSessionDeinitializedError == true : error is URLError)
        withExtendedLifetime(session) {}
        ended.record(true)
        #expect(try await calls.queue.result(of: "delayed")?.summary.state == .cancelled)
        await calls.queue.stop()
    }

    @Test func `releasing the session leaves a stored request to the queue`() async throws {
        calls.gate.turn(.notReachable)
        let receipts = Recorder<String>()
        var session: SessionManager? = SessionManager()
        let request = try #require(session).request(calls.post("x")).queueIfOffline(calls.queue)
            .onQueued(queue: calls.handlers) { receipts.record($0.id) }
        async let response = request.response()
        try await receipts.wait { !$0.isEmpty }
        session = nil
        let error = try #require(await response.error as? QueueError)
        #expect(error == .leftToQueue(receipts.values[0]))
        #expect(try await calls.state(of: receipts.values[0]) == .pending)
        await calls.queue.stop()
    }

    @Test func `stopping the queue leaves a stored request to its next start`() async throws {
        async let response = post().queueIfOffline(calls.queue).response()
        let attempt = await calls.sender.nextAttempt()
        await calls.queue.stop()
        let error = try #require(await response.error as? QueueError)
        #expect(error == .leftToQueue(attempt.id))
    }

    @Test(arguments: [false, true])
    func `a request that can never be stored is refused at the call, although its host can be reached`(
        isStarted: Bool
    ) async throws {
        let server = try ScriptedServer { _ in .stall(then: .close) }
        calls.session.startRequestsImmediately = isStarted
        var request = calls.post("x", to: server.url)
        request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
        let call = calls.session.request(request)
        if isStarted { await server.requests(atLeast: 1) }
        let error = await call.queueIfOffline(calls.queue).response().error as? QueueError
        #expect(error?.code == .secretHeader && error?.message.contains("`credential`") == true)
        #expect(call.queueError as? QueueError == error && call.state == .finished)
        #expect(server.requests.count == (isStarted ? 1 : 0), "it is sent at most once")
        #expect(try await calls.queue.counts == QueueCounts())
        await calls.queue.stop()
    }

    @Test(arguments: [503, nil])
    func `a request whose commit fails has its own error and the store's`(status: Int?) async throws {
        let full = QueueError(.storeFailed, "the disk is full")
        let calls = try await QueuedCalls { throw full }
        // The queue takes a POST over after a status only if its first attempt had a key.
        calls.session.startRequestsImmediately = false
        let server = try ScriptedServer { _ in .respond(status: status ?? 200) }
        var options = OfflineOptions(EnqueueOptions(id: "delayed"))
        options.statuses = [500...599]
        let request = calls.session.request(calls.post("x", to: status.map { _ in server.url })).validate()
        // The handler reads the error before the caller could.
        let errors = Recorder<(any Error)?>()
        request.queueIfOffline(calls.queue, options).response(queue: calls.handlers) { [weak request] _ in
            errors.record(request?.queueError)
        }
        let error = await request.response().error
        #expect((error as? AFError)?.responseCode == status)
        let code: URLError.Code? = status == nil ? .cannotConnectToHost : nil
        #expect((error as? URLError)?.code == code)
        try await errors.wait { !$0.isEmpty }
        #expect(errors.values.first as? QueueError == full && request.queueError as? QueueError == full)
        await calls.queue.stop()
        await self.calls.queue.stop()
    }

    @Test func `a handler may capture its request to read why it was not stored`() async throws {
        let full = QueueError(.storeFailed, "the disk is full")
        let calls = try await QueuedCalls { throw full }
        let errors = Recorder<(any Error)?>()
        // As in the documentation, no variable refers to the request when the handler is called.
        func send() -> DataRequest {
            let options = OfflineOptions(EnqueueOptions(id: "delayed"))
            let request = calls.session.request(calls.post("x"))
            request.queueIfOffline(calls.queue, options).response(queue: calls.handlers) { _ in
                errors.record(request.queueError)
            }
            return request
        }
        weak var released: DataRequest?
        released = send()
        try await errors.wait { !$0.isEmpty }
        #expect(errors.values.first as? QueueError == full)
        try await poll { released == nil }
        await calls.queue.stop()
        await self.calls.queue.stop()
    }

    @Test func `a failure that the queue does not cover has no error of the queue`() async throws {
        let server = try ScriptedServer { _ in .respond(status: 404) }
        let request = calls.session.request(server.url).validate().queueIfOffline(calls.queue)
        #expect((await request.response().error as? AFError)?.responseCode == 404)
        #expect(request.queueError == nil)
        await calls.queue.stop()
    }

    @Test func `a queue that was stopped takes over nothing`() async throws {
        await calls.queue.stop()
        let error = try #require(await post().queueIfOffline(calls.queue).response().error as? URLError)
        #expect((error.errorUserInfo[NSUnderlyingErrorKey] as? QueueError)?.code == .stopped)
    }
}
