internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// The failures after which a queue takes over a request, and those after which it does not.
@Suite(.timeLimit(.minutes(5))) struct QueuedFailureTests {
    private let calls: QueuedCalls

    init() async throws {
        calls = try await QueuedCalls()
    }

    /// Options with which the queue adds no idempotency key, so that a repetition is not harmless.
    private static var withoutKey: OfflineOptions {
        var options = OfflineOptions()
        options.enqueue.idempotencyKey = .none
        return options
    }

    private func server(_ action: ScriptedServer.Action) throws -> ScriptedServer {
        try ScriptedServer { _ in action }
    }

    /// Expects that the request fails with its own error and that the queue has stored nothing.
    private func expectRefusal(_ request: URLRequest, _ options: OfflineOptions = OfflineOptions())
        async throws
    {
        // Otherwise the request may have failed before its owner is set.
        calls.session.startRequestsImmediately = false
        let response = await calls.session.request(request).validate().queueIfOffline(calls.queue, options)
            .response()
        #expect(response.error != nil && !(response.error is QueueError))
        #expect(try await calls.queue.counts == QueueCounts())
        await calls.queue.stop()
    }

    /// Expects that the request is stored, and returns the queue's attempt.
    private func attempt(_ request: URLRequest, _ options: OfflineOptions = OfflineOptions()) async -> Attempt
    {
        calls.session.startRequestsImmediately = false
        calls.session.request(request).validate().queueIfOffline(calls.queue, options).resume()
        let attempt = await calls.sender.nextAttempt()
        await calls.queue.stop()
        return attempt
    }

    @Test(arguments: ["http://127.0.0.1:1/", "http://name.invalid/", "http://[100::1]:1/"])
    func `a request to an unreachable host is taken over`(url: String) async {
        #expect(await attempt(calls.post("x", to: url)).url == url)
    }

    @Test func `a request with a secret is taken over only if its options name a credential`() async throws {
        var request = calls.post("x")
        request.setValue("Bearer now", forHTTPHeaderField: "Authorization")
        calls.session.startRequestsImmediately = false
        let refused = await calls.session.request(request).queueIfOffline(calls.queue).response()
        #expect((refused.error as? QueueError)?.code == .secretHeader)
        let credential = try QueueCredential(.bearer("later"), origins: ["http://127.0.0.1:1"])
        try await calls.queue.register(credential, as: "token")
        var options = OfflineOptions()
        options.enqueue.credential = "token"
        #expect(await attempt(request, options).value(of: "Authorization") == "Bearer later")
    }

    @Test func `a TLS handshake that does not end in time is taken over`() async throws {
        let deaf = try ScriptedServer(mode: .deaf)
        calls.session.requestOptions.connectTimeout = 0.2
        let url = "https://127.0.0.1:\(deaf.port)/"
        #expect(await attempt(calls.post("x", to: url)).url == url)
    }

    @Test func `a request that the server may have received is not taken over`() async throws {
        let server = try server(.close)
        try await expectRefusal(calls.post("x", to: server.url))
        #expect(server.requests.count == 1)
    }

    @Test func `a lost response is taken over on demand, if the request carried a key`() async throws {
        var options = OfflineOptions()
        options.includesAmbiguousFailures = true
        let server = try server(.close)
        var request = calls.post("x", to: server.url)
        request.setValue("key-1", forHTTPHeaderField: "Idempotency-Key")
        let attempt = await attempt(request, options)
        #expect(attempt.headers.filter { $0.name == "Idempotency-Key" }.map(\.value) == ["key-1"])
        #expect(server.requests.map { $0.values(of: "Idempotency-Key") } == [["key-1"]])
    }

    @Test func `a request that has not started gets a key, which all of its attempts carry`() async throws {
        struct RetryTwice: RequestRetrier {
            func should(
                _ manager: SessionManager,
                retry request: Request,
                with error: any Error,
                completion: @escaping RequestRetryCompletion
            ) { completion(request.retryCount < 2, 0) }
        }
        var options = OfflineOptions()
        options.includesAmbiguousFailures = true
        let server = try server(.close)
        calls.session.retrier = RetryTwice()
        let attempt = await attempt(calls.post("x", to: server.url), options)
        let keys = server.requests.map { $0.values(of: "Idempotency-Key") }
        #expect(keys.count == 3 && keys[0].count == 1 && Set(keys).count == 1)
        #expect(attempt.headers.filter { $0.name == "Idempotency-Key" }.map(\.value) == keys[0])
    }

    @Test func `a lost response is not taken over if the request had no key`() async throws {
        var options = Self.withoutKey
        options.includesAmbiguousFailures = true
        let server = try server(.close)
        try await expectRefusal(calls.post("x", to: server.url), options)
        #expect(server.requests.map { $0.values(of: "Idempotency-Key") } == [[]])
    }

    @Test func `a request that was started before gets no key and is not taken over`() async throws {
        var options = OfflineOptions()
        options.includesAmbiguousFailures = true
        let server = try server(.stall(then: .close))
        let request = calls.session.request(calls.post("x", to: server.url))
        await server.requests(atLeast: 1)
        request.queueIfOffline(calls.queue, options)
        async let response = request.response()
        server.release()
        #expect(await (response.error as? URLError)?.code == .networkConnectionLost)
        #expect(server.requests.map { $0.values(of: "Idempotency-Key") } == [[]])
        #expect(try await calls.queue.counts == QueueCounts())
        await calls.queue.stop()
    }

    @Test func `a lost response to an idempotent request is taken over on demand`() async throws {
        var options = OfflineOptions()
        options.includesAmbiguousFailures = true
        let server = try server(.close)
        var request = calls.post("x", to: server.url)
        request.httpMethod = "PUT"
        #expect(await attempt(request, options).method == "PUT")
        // The connection was new. Only when a reused connection is lost does libcurl itself resend an idempotent
        // request.
        #expect(server.requests.count == 1)
    }

    @Test(arguments: [(503, "PUT", true), (503, "POST", true), (429, "POST", true), (404, "PUT", false)])
    func `rejected statuses are taken over as the options say`(
        status: Int,
        method: String,
        isTaken: Bool
    ) async throws {
        var options = OfflineOptions()
        options.statuses = [429...429, 500...599]
        let server = try server(.respond(status: status))
        var request = calls.post("x", to: server.url)
        request.httpMethod = method
        if isTaken {
            #expect(await attempt(request, options).method == method)
        } else {
            try await expectRefusal(request, options)
        }
    }

    @Test func `a rejected status is not taken over by default`() async throws {
        let server = try server(.respond(status: 503))
        var request = calls.post("x", to: server.url)
        request.httpMethod = "PUT"
        try await expectRefusal(request)
    }

    @Test func `a request that was retried after it may have been received is not taken over`() async throws {
        struct RetryElsewhere: RequestRetrier, RequestAdapter {
            let attempts = Recorder<Int>()
            func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
                attempts.record(1)
                guard attempts.values.count > 1 else { return urlRequest }
                var request = urlRequest
                request.url = URL(string: "http://127.0.0.1:1/")
                return request
            }
            func should(
                _ manager: SessionManager,
                retry request: Request,
                with error: any Error,
                completion: @escaping RequestRetryCompletion
            ) { completion(request.retryCount == 0, 0) }
        }
        let retry = RetryElsewhere()
        calls.session.adapter = retry
        calls.session.retrier = retry
        let server = try server(.close)
        try await expectRefusal(calls.post("x", to: server.url), Self.withoutKey)
        #expect(retry.attempts.values.count == 2)
    }

    @Test func `a request that was redirected to an unreachable server is not taken over`() async throws {
        let location = ScriptedServer.Header("Location", "http://127.0.0.1:1/")
        let server = try server(.respond(status: 303, headers: [location]))
        try await expectRefusal(calls.post("x", to: server.url), Self.withoutKey)
        #expect(server.requests.count == 1)
    }

    @Test func `a key or a method that an adapter changes does not make a repetition safe`() async throws {
        struct Adapter: RequestAdapter {
            let change: @Sendable (inout URLRequest) -> Void
            func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
                var request = urlRequest
                change(&request)
                return request
            }
        }
        let server = try server(.close)
        var options = OfflineOptions()
        options.includesAmbiguousFailures = true
        var request = calls.post("x", to: server.url)
        request.setValue("own", forHTTPHeaderField: "Idempotency-Key")
        calls.session.adapter = Adapter { $0.setValue("other", forHTTPHeaderField: "Idempotency-Key") }
        calls.session.startRequestsImmediately = false
        let keyed = calls.session.request(request).queueIfOffline(calls.queue, options)
        #expect((await keyed.response().error as? URLError)?.code == .networkConnectionLost)
        calls.session.adapter = Adapter { $0.httpMethod = "PUT" }
        options.enqueue.idempotencyKey = .none
        try await expectRefusal(calls.post("x", to: server.url), options)
    }

    @Test func `credentials of a request are not stored`() async throws {
        calls.session.startRequestsImmediately = false
        for isLate in [false, true] {
            let request = calls.session.request(calls.post("x"))
            if isLate { request.queueIfOffline(calls.queue) }
            request.authenticate(user: "user", password: "password")
            if !isLate { request.queueIfOffline(calls.queue) }
            #expect((await request.response().error as? QueueError)?.code == .secretHeader, "\(isLate)")
        }
        await calls.queue.stop()
    }

    @Test func `a stream is not read for a request that the queue refuses`() async throws {
        // Only asked for its status after the upload has failed.
        nonisolated(unsafe) let stream = InputStream(data: Data("x".utf8))
        calls.session.startRequestsImmediately = false
        let request = calls.session.upload(stream, to: calls.url, headers: ["Cookie": "secret"])
        let error = await request.queueIfOffline(calls.queue).response().error as? QueueError
        #expect(error?.code == .secretHeader)
        #expect(stream.streamStatus == .notOpen)
        #expect(await calls.queue.stagedBodies().isEmpty)
        await calls.queue.stop()
    }

    // MARK: Bodies

    @Test func `uploads are stored with their bodies`() async throws {
        let scratch = try ScratchDirectory()
        let file = URL(fileURLWithPath: scratch.file("body"))
        try Data("from a file".utf8).write(to: file)
        let session = calls.session
        session.startRequestsImmediately = false
        let bodies: [(UploadRequest, String)] = [
            (session.upload(Data("from memory".utf8), to: calls.url), "from memory"),
            (session.upload(file, to: calls.url), "from a file"),
            (session.upload(InputStream(data: Data("from a stream".utf8)), to: calls.url), "from a stream"),
            (session.upload(InputStream(data: Data()), to: calls.url), ""),
        ]
        for (upload, body) in bodies {
            let receipts = Recorder<Receipt>()
            upload.queueIfOffline(calls.queue).onQueued(queue: calls.handlers) { receipts.record($0) }
                .resume()
            try await receipts.wait { !$0.isEmpty }
            // The queue has its own copy.
            if body == "from a file" { try FileManager.default.removeItem(at: file) }
            let attempt = await calls.sender.nextAttempt()
            #expect(String(decoding: attempt.bytes, as: UTF8.self) == body)
            calls.sender.answer(attempt, .status(200))
        }
        await calls.queue.stop()
    }

    @Test(arguments: [UInt64.max, 0])
    func `a multipart upload is stored with its content type, from memory and from a file`(
        threshold: UInt64
    ) async throws {
        calls.session.upload(
            multipartFormData: { $0.append(Data("value".utf8), withName: "field") },
            usingThreshold: threshold,
            to: calls.url
        ) { [calls] result in
            guard case .success(let upload, _, _) = result else { return }
            upload.queueIfOffline(calls.queue)
        }
        let attempt = await calls.sender.nextAttempt()
        let type = try #require(attempt.headers.first { $0.name == "Content-Type" }?.value)
        #expect(type.hasPrefix("multipart/form-data; boundary="))
        let body = String(decoding: attempt.bytes, as: UTF8.self)
        #expect(body.contains("name=\"field\"") && body.contains("value"))
        await calls.queue.stop()
    }

    /// The queue has room for 1 MiB. A single lane may use half of it.
    @Test(arguments: [(4 << 20, QueueError.Code.queueFull), (700 << 10, .bodyTooLarge)])
    func `a stream that exceeds a limit of the queue fails with its network error, and nothing of it is kept`(
        size: Int,
        code: QueueError.Code
    ) async throws {
        var limits = QueueLimits()
        limits.bytes = 1 << 20
        let calls = try await QueuedCalls(limits: limits)
        calls.session.startRequestsImmediately = false
        let (receipts, errors) = (Recorder<Receipt>(), Recorder<(any Error)?>())
        let upload = calls.session.upload(InputStream(data: Data(count: size)), to: calls.url)
            .queueIfOffline(calls.queue).onQueued(queue: calls.handlers) { receipts.record($0) }
        for _ in 0..<3 { upload.response(queue: calls.handlers) { errors.record($0.error) } }
        let awaited = await upload.response().error
        try await errors.wait { $0.count >= 3 }
        // By this turn of the handlers' queue, a second call of a handler has been made.
        await withCheckedContinuation { done in calls.handlers.async { done.resume() } }
        #expect(errors.values.count == 3 && receipts.values.isEmpty)
        for error in errors.values + [awaited] {
            let error = try #require(error as? URLError)
            #expect(error.code == .cannotConnectToHost)
            #expect((error.errorUserInfo[NSUnderlyingErrorKey] as? QueueError)?.code == code)
        }
        #expect(await calls.queue.stagedBodies().isEmpty)
        #expect(try await calls.queue.counts == QueueCounts())
        // The room of the refused stream is free again.
        let fits = calls.session.upload(InputStream(data: Data(count: 300 << 10)), to: calls.url)
        fits.queueIfOffline(calls.queue).resume()
        #expect(await calls.sender.nextAttempt().bytes.count == 300 << 10)
        await calls.queue.stop()
    }

    @Test func `a stream that was read in part cannot be stored`() async throws {
        var options = OfflineOptions()
        options.includesAmbiguousFailures = true
        let server = try server(.close)
        let headers = ["Idempotency-Key": "k"]
        calls.session.startRequestsImmediately = false
        let response = await calls.session
            .upload(InputStream(data: Data("x".utf8)), to: server.url, headers: headers)
            .queueIfOffline(calls.queue, options).response()
        let error = try #require(response.error as? URLError)
        #expect((error.errorUserInfo[NSUnderlyingErrorKey] as? QueueError)?.code == .bodyUnavailable)
        await calls.queue.stop()
    }
}
