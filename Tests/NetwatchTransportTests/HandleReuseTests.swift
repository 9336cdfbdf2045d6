internal import CNetwatchCurl
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchTransport

/// Similar transfers use the same easy handle one after another. Nothing of an earlier transfer affects a later one.
@Suite(.timeLimit(.minutes(5))) struct HandleReuseTests {
    private let engine: TransferEngine

    init() throws {
        engine = try TransferEngine(resolver: .answering("127.0.0.1"))
    }

    /// The number of unused handles of the first multi handle.
    private func unusedHandles() async -> Int? {
        await valuesOfUnusedHandles { _ in }?.count
    }

    /// Returns a value of each unused handle of the first multi handle; `nil` if there is no multi handle.
    private func valuesOfUnusedHandles<Value: Sendable>(
        _ value: @escaping @Sendable (TransferHandle) -> Value
    ) async -> [Value]? {
        await withCheckedContinuation { continuation in
            engine.perform { engine in
                continuation.resume(returning: engine.multis[1]?.unusedHandles.handles.map(value))
            }
        }
    }

    @Test func `equal transfers use one handle`() async throws {
        let server = try ScriptedServer { .respond($0.target) }
        for path in ["/a", "/b", "/c"] {
            #expect(await engine.run(TransferRequest(server, path)).text == path)
            #expect(await unusedHandles() == 1)
        }
    }

    @Test func `concurrent transfers use separate handles`() async throws {
        let server = try ScriptedServer { .stall(then: .respond($0.target)) }
        let recorders = (0..<3).map { index in
            let recorder = TransferRecorder()
            engine.start(TransferRequest(server, "/\(index)")) { recorder.deliver($0) }
            return recorder
        }
        await server.requests(atLeast: 3)
        server.release()
        for (index, recorder) in recorders.enumerated() { #expect(await recorder.end().text == "/\(index)") }
        #expect(await unusedHandles() == 3)
    }

    @Test func `each kind of request has its own handle`() async throws {
        let server = try ScriptedServer { request in
            .respond(status: 200, headers: [.init("X-Method", request.method)], body: Array("body".utf8))
        }
        let requests = [
            TransferRequest(server), TransferRequest(server, method: "HEAD"),
            TransferRequest(server, method: "DELETE"),
            TransferRequest(url: "http://name.test:\(server.port)/"),
        ]
        for request in requests + requests.reversed() {
            let record = await engine.run(request)
            #expect(record.head?.fields.values(of: "X-Method") == [request.method])
            #expect(record.text == (request.method == "HEAD" ? "" : "body"))
        }
        #expect(await unusedHandles() == requests.count)
    }

    /// A reason why a handle is used for one transfer only.
    enum Reason: CaseIterable {
        case body, credentials, userName, newConnection, post, unixSocket, failure, timeout, oldVersion,
            resent
    }

    @Test(arguments: Reason.allCases)
    func `a handle in which something may remain is not used again`(reason: Reason) async throws {
        let path = temporarySocketPath()
        defer { unlink(path) }
        let script: ScriptedServer.Script = { request in
            switch reason {
            case .failure: .close
            case .timeout: .stall(then: .close)
            case .oldVersion: .send("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", then: .close)
            case .resent: request.number == 2 ? .close : .respond("")
            default: .respond("")
            }
        }
        let isUnix = reason == .unixSocket
        let server = try isUnix ? ScriptedServer(unixPath: path, script) : ScriptedServer(script)
        var request = TransferRequest(url: isUnix ? "http://localhost/" : server.url)
        switch reason {
        case .body: (request.method, request.body) = ("PUT", .bytes([1]))
        case .credentials: request.credentials = TransferCredentials(user: "u", password: "p")
        case .userName: request.url.replace("http://", with: "http://u:p@")
        case .newConnection: request.allowsConnectionReuse = false
        case .post: request.method = "POST"
        case .unixSocket: request.unixSocketPath = path
        case .timeout: request.totalTimeout = .milliseconds(50)
        case .failure, .oldVersion, .resent: break
        }
        if reason == .resent { #expect(await engine.run(request).hasSucceeded) }
        _ = await engine.run(request)
        #expect(await unusedHandles() == 0)
    }

    @Test func `the header fields of an earlier transfer are not sent`() async throws {
        let server = try ScriptedServer()
        let secret = [TransferRequest.Header("Authorization", "Bearer secret")]
        let others = [TransferRequest.Header("X-Note", "1"), .init("Accept", "*/*")]
        for headers in [secret, [], others, secret, []] {
            #expect(await engine.run(TransferRequest(server) { $0.headers = headers }).hasSucceeded)
        }
        #expect(await unusedHandles() == 1)
        let sent = server.requests
        #expect(sent.map { $0.values(of: "Authorization").count } == [1, 0, 0, 1, 0])
        #expect(sent.map { $0.values(of: "X-Note").count } == [0, 0, 1, 0, 0])
    }

    @Test(arguments: ["Authorization", "cookie", "X-Api-Key"])
    func `an unused handle keeps header fields only if they contain no secret`(name: String) async throws {
        let server = try ScriptedServer()
        let note = TransferRequest.Header("X-Note", "1")
        let secret = TransferRequest.Header(name, "secret")
        for headers in [[note], [note, secret], [note, secret], [note]] {
            #expect(await engine.run(TransferRequest(server) { $0.headers = headers }).hasSucceeded)
            let kept = await valuesOfUnusedHandles { $0.headers }
            let expected: [[TransferRequest.Header]?] = headers == [note] ? [headers] : [nil]
            #expect(kept == expected)
        }
        #expect(server.requests.map { $0.values(of: name).count } == [0, 1, 1, 0])
        #expect(server.requests.allSatisfy { $0.values(of: "X-Note") == ["1"] })
    }

    @Test func `the timeouts of an earlier transfer do not apply`() async throws {
        let server = try ScriptedServer {
            $0.target == "/late" ? .stall(then: .respond("late")) : .respond("")
        }
        #expect(await engine.run(TransferRequest(server)).hasSucceeded)
        let late = await engine.run(TransferRequest(server, "/late") { $0.totalTimeout = .milliseconds(50) })
        #expect(late.failure?.code == 28)
        #expect(
            await engine.run(TransferRequest(server) { $0.totalTimeout = .milliseconds(200) }).hasSucceeded
        )
        let recorder = TransferRecorder()
        engine.start(TransferRequest(server, "/late")) { recorder.deliver($0) }
        await server.requests(atLeast: 4)
        // With the timeout of the transfer before it, this one would fail in this time.
        try await Task.sleep(for: .milliseconds(500))
        server.release()
        #expect(await recorder.end().text == "late")
    }

    @Test func `the error of a later transfer is its own`() async throws {
        let server = try ScriptedServer { $0.target == "/reset" ? .reset : .respond("") }
        #expect(await engine.run(TransferRequest(server)).hasSucceeded)
        let second = await engine.run(TransferRequest(server, "/reset") { $0.allowsResending = false })
        #expect(second.failure?.phase == .response)
        let third = await engine.run(TransferRequest(server))
        #expect(third.hasSucceeded && third.metrics?.reusedConnection == false)
    }

    /// The second request meets a reset connection, so libcurl sends it again.
    @Test func `a failure without an error number does not report that of an earlier transfer`() async throws
    {
        let server = try ScriptedServer { request in
            if request.target == "/short" {
                return .send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nx", then: .close)
            }
            return request.number == 2 ? .reset : .respond("")
        }
        for _ in 0..<2 { #expect(await engine.run(TransferRequest(server)).hasSucceeded) }
        #expect(server.requests.count == 3)
        let failure = await engine.run(TransferRequest(server, "/short")).failure
        #expect(failure?.code == 18)
        #expect(failure?.osErrno == 0)
    }

    @Test func `a transfer that ends before libcurl begins it reports nothing of an earlier one`()
        async throws
    {
        let server = try ScriptedServer()
        let first = await engine.run(TransferRequest(server))
        #expect((first.metrics?.requestHeaderBytes ?? 0) > 0)
        #expect(await unusedHandles() == 1)
        // The engine starts and cancels the transfer in the same turn.
        let (gate, recorder) = (Gate(), TransferRecorder())
        engine.perform { _ in gate.wait() }
        let id = engine.start(TransferRequest(server)) { recorder.deliver($0) }
        engine.cancel(id)
        gate.open()
        let record = await recorder.end()
        #expect(record.failure?.code == 42)
        #expect(record.failure?.phase == .connect)
        #expect(record.failure?.bytesSent == 0)
        #expect(record.metrics?.requestHeaderBytes == 0)
        #expect(record.metrics?.remoteAddress == nil)
        #expect(server.requests.count == 1)
    }

    @Test func `an unused handle reports nothing of its last transfer`() async throws {
        let server = try ScriptedServer { .respond($0.target) }
        #expect(await engine.run(TransferRequest(server)).hasSucceeded)
        let known = await valuesOfUnusedHandles { $0.easy.long(CURLINFO_PRIMARY_PORT) }
        #expect(known == [Int(server.port)])
        let port = await valuesOfUnusedHandles { $0.long(CURLINFO_PRIMARY_PORT) }
        #expect(port == [0])
        let received = await valuesOfUnusedHandles { $0.offset(CURLINFO_SIZE_DOWNLOAD_T) }
        #expect(received == [0])
        let address = await valuesOfUnusedHandles { $0.string(CURLINFO_PRIMARY_IP) }
        #expect(address == [nil])
    }

    @Test func `each transfer has its own metrics`() async throws {
        let server = try ScriptedServer { .respond($0.target) }
        for path in ["/", "/longer"] {
            let metrics = try #require(await engine.run(TransferRequest(server, path)).metrics)
            #expect(metrics.responseBodyBytes == path.utf8.count)
            #expect(metrics.reusedConnection == (path == "/longer"))
        }
        await server.requests(atLeast: 2)
        server.hangUp()
        await server.openConnections(atMost: 0)
        let metrics = try #require(await engine.run(TransferRequest(server)).metrics)
        #expect(!metrics.reusedConnection && metrics.connected != nil)
    }
}
