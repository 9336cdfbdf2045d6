internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// A cancelled transfer ends once with code 42, in every phase.
@Suite(.timeLimit(.minutes(5))) struct CancellationTests {
    private let engine: TransferEngine

    init() throws {
        engine = try TransferEngine()
    }

    /// Starts a transfer and cancels it three times after `moment`. Checks that it ends only once, and returns its
    /// failure.
    private func cancelled(
        _ request: TransferRequest,
        on engine: TransferEngine,
        at moment: () async -> Void = {}
    ) async -> TransferFailure? {
        let recorder = TransferRecorder()
        let id = engine.start(request) { recorder.deliver($0) }
        await moment()
        for _ in 0..<3 { engine.cancel(id) }
        _ = await recorder.end()
        await engine.settle()
        #expect(recorder.record.ends.count == 1)
        #expect(recorder.record.failure?.code == 42)
        return recorder.record.failure
    }

    @Test func `a transfer can be cancelled before it has begun`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .close) }
        _ = await cancelled(TransferRequest(url: server.url), on: engine)
    }

    @Test func `a transfer can be cancelled during the name lookup`() async throws {
        let gate = LookupGate()
        let engine = try TransferEngine(resolver: gate.resolver)
        let request = TransferRequest(url: "http://netwatch.invalid/")
        let failure = await cancelled(request, on: engine) { await gate.isEntered() }
        #expect(failure?.phase == .resolve)
        gate.open()
        await engine.settle()
    }

    @Test func `a transfer can be cancelled while it connects`() async throws {
        let port = try UnansweringPort()
        let request = TransferRequest(url: "http://127.0.0.1:\(port.port)/")
        let failure = await cancelled(request, on: engine) { await engine.settle() }
        #expect(failure?.phase == .connect)
        #expect(failure?.bytesSent == 0)
    }

    @Test func `a transfer can reuse the descriptor number of one cancelled during connecting`() async throws
    {
        let port = try UnansweringPort()
        let server = try ScriptedServer { _ in .respond(status: 200, headers: [.init("Connection", "close")])
        }
        // This is repeated, because other tests also create sockets and may take the descriptor number.
        for _ in 0..<50 {
            let unanswered = TransferRequest(url: "http://127.0.0.1:\(port.port)/")
            _ = await cancelled(unanswered, on: engine) { await engine.settle() }
            var request = TransferRequest(url: server.url)
            request.allowsConnectionReuse = false
            request.totalTimeout = .seconds(20)
            #expect(await engine.run(request).hasSucceeded)
        }
    }

    @Test func `a transfer can be cancelled during the TLS handshake`() async throws {
        let server = try ScriptedServer(mode: .deaf)
        let request = TransferRequest(url: "https://127.0.0.1:\(server.port)/")
        let failure = await cancelled(request, on: engine) { await server.unreadConnections(atLeast: 1) }
        #expect(failure?.phase == .tls)
        #expect(failure?.bytesSent == 0)
    }

    @Test func `a transfer can be cancelled while it sends the request`() async throws {
        let server = try ScriptedServer(mode: .deaf)
        var request = TransferRequest(url: server.url, method: "PUT")
        request.body = .bytes([UInt8](repeating: 0, count: 50_000_000))
        let failure = try #require(
            await cancelled(request, on: engine) { await server.unreadConnections(atLeast: 1) }
        )
        #expect(failure.phase == .request)
        #expect(failure.bytesSent > 0)
        #expect(failure.bytesSent < 50_000_000)
    }

    @Test func `a transfer can be cancelled while it waits for the response`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .close) }
        let failure = await cancelled(TransferRequest(url: server.url), on: engine) {
            await server.requests(atLeast: 1)
        }
        #expect(failure?.phase == .response)
    }

    @Test func `a transfer can be cancelled while it receives the body`() async throws {
        let server = try ScriptedServer { _ in .endlessBody }
        let failure = await cancelled(TransferRequest(url: server.url), on: engine) {
            await server.requests(atLeast: 1)
        }
        #expect(failure?.phase == .response)
    }

    @Test func `cancelling after the end has no effect`() async throws {
        let server = try ScriptedServer()
        let recorder = TransferRecorder()
        let id = engine.start(TransferRequest(url: server.url)) { recorder.deliver($0) }
        _ = await recorder.end()
        engine.cancel(id)
        await engine.settle()
        #expect(recorder.record.ends.count == 1)
        #expect(recorder.record.hasSucceeded)
    }

    @Test func `releasing the engine ends its transfers once`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .close) }
        let (waiting, looking) = (TransferRecorder(), TransferRecorder())
        let gate = LookupGate()
        do {
            let engine = try TransferEngine(resolver: gate.resolver)
            engine.start(TransferRequest(url: server.url)) { waiting.deliver($0) }
            engine.start(TransferRequest(url: "http://netwatch.invalid/")) { looking.deliver($0) }
            await server.requests(atLeast: 1)
            await gate.isEntered()
        }
        #expect(await waiting.end().failure?.code == 42)
        #expect(await looking.end().failure?.code == 42)
        gate.open()
        await server.openConnections(atMost: 0)
    }

    @Test func `a cancelled connection closes, whatever programs were started meanwhile`()
        async throws
    {
        let server = try ScriptedServer { _ in .stall(then: .close) }
        let recorder = TransferRecorder()
        let id = engine.start(TransferRequest(url: server.url)) { recorder.deliver($0) }
        _ = await server.requests(atLeast: 1)
        let program = try Subprocess("/bin/sleep", ["3600"])
        engine.cancel(id)
        _ = await recorder.end()
        await server.openConnections(atMost: 0)
        program.signal(SIGKILL)
    }
}
