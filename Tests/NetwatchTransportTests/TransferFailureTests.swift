internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// The codes, phases and messages of failures.
@Suite(.timeLimit(.minutes(5))) struct TransferFailureTests {
    private let engine: TransferEngine

    init() throws {
        engine = try TransferEngine()
    }

    @Test func `a refused connection fails with code 7`() async throws {
        let port = try RefusingPort()
        let failure = await engine.run(TransferRequest(url: port.url)).failure
        #expect(failure?.code == 7)
        #expect(failure?.osErrno == ECONNREFUSED)
        #expect(failure?.phase == .connect)
        #expect(failure?.bytesSent == 0)
    }

    @Test func `a name without an address keeps the resolver's code`() async throws {
        let engine = try TransferEngine(
            resolver: NameResolver { _ in NameResolver.getAddresses(of: "netwatch.invalid..") }
        )
        let failure = await engine.run(TransferRequest(url: "http://netwatch.invalid/")).failure
        #expect(failure?.code == 6)
        #expect(failure?.resolverCode == EAI_NONAME)
        #expect(failure?.phase == .resolve)
    }

    @Test func `a missing unix socket is a failed connection`() async {
        var request = TransferRequest(url: "http://netwatch/")
        request.unixSocketPath = temporarySocketPath()
        let failure = await engine.run(request).failure
        #expect(failure?.code == 7)
        #expect(failure?.osErrno == ENOENT)
    }

    @Test func `a closed connection and a reset one have different codes`() async throws {
        let closing = try ScriptedServer { _ in .close }
        let resetting = try ScriptedServer { _ in .reset }
        let closed = await engine.run(TransferRequest(url: closing.url)).failure
        let reset = await engine.run(TransferRequest(url: resetting.url)).failure
        #expect(closed?.code == 52)
        #expect(reset?.code == 56)
        #expect(closed?.phase == .response)
        #expect(reset?.phase == .response)
        #expect(try #require(reset).bytesSent > 0)
    }

    @Test func `after a reset in the TLS handshake nothing of the request was sent`() async throws {
        let server = try ScriptedServer(mode: .deaf)
        let recorder = TransferRecorder()
        var request = TransferRequest(url: "https://127.0.0.1:\(server.port)/")
        request.connectTimeout = .seconds(3600)
        engine.start(request) { recorder.deliver($0) }
        await server.unreadConnections(atLeast: 1)
        server.release()
        let failure = await recorder.end().failure
        #expect(failure?.code == 35)
        #expect(failure?.phase == .tls)
        #expect(failure?.bytesSent == 0)
    }

    @Test func `a body that ends early is delivered as far as it was received`() async throws {
        let server = try ScriptedServer { _ in
            .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", then: .close)
        }
        let record = await engine.run(TransferRequest(url: server.url))
        #expect(record.failure?.code == 18)
        #expect(record.head?.status == 200)
        #expect(record.text == "abc")
    }

    @Test func `a response that is not HTTP fails`() async throws {
        let server = try ScriptedServer { _ in .send("220 mail.example ESMTP\r\n", then: .close) }
        let record = await engine.run(TransferRequest(url: server.url))
        #expect(record.failure?.code == 8)
        #expect(record.failure?.phase == .response)
        #expect(record.failure?.message == #"the response is not HTTP: "220 mail.example ESMTP\r\n""#)
        #expect(record.heads.isEmpty && record.text.isEmpty, "delivered as HTTP/0.9")
    }

    /// libcurl reads no body in a response to HEAD, even if the response is not HTTP.
    @Test(arguments: ["220 mail.example ESMTP\r\n", "HTTP/3.9 200 OK\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n"])
    func `a response to HEAD that is not HTTP fails`(answer: String) async throws {
        let server = try ScriptedServer { _ in .send(answer, then: .close) }
        let record = await engine.run(TransferRequest(url: server.url, method: "HEAD"))
        #expect(record.failure != nil && record.heads.isEmpty)
    }

    @Test func `the response timeout replaces the idle timeout until the response begins`()
        async throws
    {
        func request(to server: ScriptedServer, idle: Duration, response: Duration?) -> TransferRequest {
            var request = TransferRequest(url: server.url)
            (request.idleTimeout, request.responseTimeout) = (idle, response)
            return request
        }
        let server = try ScriptedServer { _ in .stall(then: .respond("late")) }
        let short = Duration.milliseconds(100)
        async let record = engine.run(request(to: server, idle: short, response: .seconds(60)))
        await server.requests(atLeast: 1)
        // This transfer begins later, and the engine checks both at the same times. So the first one would fail earlier.
        let idle = await engine.run(request(to: server, idle: short, response: nil))
        #expect(idle.failure?.code == 28)
        server.release()
        #expect(await record.text == "late")
        let silent = try ScriptedServer { _ in .stall(then: .close) }
        let late = await engine.run(request(to: silent, idle: .seconds(60), response: short)).failure
        #expect(late?.code == 28 && late?.phase == .response && late?.isResponseLate == true)
    }

    @Test func `endless headers are not reported as a reset`() async throws {
        let server = try ScriptedServer { _ in .endlessHeaders }
        let record = await engine.run(TransferRequest(url: server.url))
        #expect(record.failure?.code == 100)
        #expect(record.failure?.phase == .response)
        #expect(record.heads.isEmpty)
    }

    @Test func `an endless header line is not reported as lack of memory`() async throws {
        let line = [UInt8](repeating: 0x78, count: 200_000)
        let server = try ScriptedServer { _ in .send("HTTP/1.1 200 OK\r\nX: ", then: .send(line, then: .keep))
        }
        #expect(await engine.run(TransferRequest(url: server.url)).failure?.code == 100)
    }

    @Test func `a body over the limit is delivered up to the limit`() async throws {
        let server = try ScriptedServer { _ in .endlessBody }
        var request = TransferRequest(url: server.url)
        request.maximumResponseBodyBytes = 100_001
        let record = await engine.run(request)
        #expect(record.failure?.code == 63)
        #expect(record.head?.status == 200)
        #expect(record.body.count == 100_001)
    }

    @Test func `a body of exactly the limit succeeds`() async throws {
        let server = try ScriptedServer { _ in .respond("12345") }
        var request = TransferRequest(url: server.url)
        request.maximumResponseBodyBytes = 5
        #expect(await engine.run(request).hasSucceeded)
    }

    // MARK: Timeouts

    @Test func `a silent server causes the idle timeout`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .close) }
        var request = TransferRequest(url: server.url)
        request.idleTimeout = .seconds(1)
        let failure = await engine.run(request).failure
        #expect(failure?.code == 28)
        #expect(failure?.phase == .response)
    }

    @Test func `a slow body causes the body timeout, and the received bytes are delivered`() async throws {
        let server = try ScriptedServer { _ in .drippingBody }
        var request = TransferRequest(url: server.url)
        request.bodyTimeout = .milliseconds(100)
        let record = await engine.run(request)
        #expect(record.failure?.code == 28 && record.failure?.phase == .response)
        #expect(record.head?.status == 200 && !record.body.isEmpty)
    }

    @Test func `the body timeout starts with the head`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .respond("late")) }
        var request = TransferRequest(url: server.url)
        request.bodyTimeout = .zero
        request.totalTimeout = .seconds(3)
        let failure = await engine.run(request).failure
        #expect(failure?.code == 28 && failure?.message.contains("took longer than") == false)
    }

    @Test func `a connection attempt without an answer causes the connect timeout`() async throws {
        let port = try UnansweringPort()
        var request = TransferRequest(url: "http://127.0.0.1:\(port.port)/")
        request.connectTimeout = .milliseconds(50)
        let failure = await engine.run(request).failure
        #expect(failure?.code == 28)
        #expect(failure?.phase == .connect)
    }

    @Test func `a TLS handshake without an answer causes the connect timeout`() async throws {
        let server = try ScriptedServer(mode: .deaf)
        var request = TransferRequest(url: "https://127.0.0.1:\(server.port)/")
        request.connectTimeout = .milliseconds(300)
        let failure = await engine.run(request).failure
        #expect(failure?.code == 28)
        #expect(failure?.phase == .tls)
    }

    @Test func `a lookup without an answer causes the connect timeout`() async throws {
        let gate = LookupGate()
        defer { gate.open() }
        let engine = try TransferEngine(resolver: gate.resolver)
        var request = TransferRequest(url: "http://netwatch.invalid/")
        // Long enough for the resolver's thread to begin the lookup, even on a busy machine.
        request.connectTimeout = .seconds(10)
        let failure = await engine.run(request).failure
        #expect(failure?.code == 28)
        #expect(failure?.phase == .resolve)
    }

    @Test func `the total timeout ends a transfer that makes progress`() async throws {
        let server = try ScriptedServer { _ in .endlessBody }
        var request = TransferRequest(url: server.url)
        request.totalTimeout = .milliseconds(100)
        #expect(await engine.run(request).failure?.code == 28)
    }
}
