internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// Transfers that are paused for a while.
@Suite(.timeLimit(.minutes(5))) struct PauseTests {
    /// A body of 20 MB, which is more than the kernel buffers for a connection (`tcp_rmem` and `tcp_wmem` together).
    private static let large = [UInt8](repeating: 0x78, count: 20_000_000)

    private let engine: TransferEngine
    /// A server that responds to `/large` with 20 MB and to unknown paths with the request's body. It sends nothing for
    /// `/silent`, and only the head for `/falling-silent`.
    private let server: ScriptedServer

    init() throws {
        engine = try TransferEngine()
        server = try ScriptedServer { request in
            switch request.target {
            case "/large": .respond(status: 200, body: Self.large)
            case "/silent": .stall(then: .close)
            case "/falling-silent":
                .send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", then: .stall(then: .close))
            default: .respond(status: 200, body: request.body)
            }
        }
    }

    /// Starts a transfer that pauses itself whenever it delivers an event that satisfies a condition.
    private func start(
        _ request: TransferRequest,
        pausing directions: TransferPause,
        at isMoment: @escaping @Sendable (TransferEvent) -> Bool
    ) async -> (TransferID, TransferRecorder) {
        let recorder = TransferRecorder()
        let own = Lock<(id: TransferID?, isMissed: Bool)>((nil, false))
        let id = await engine.start(request, pausing: .all) { [engine] event in
            // The pause must come before the event is recorded, because the test reacts to the recorded event.
            if isMoment(event) {
                let id = own.withLock { own in
                    own.isMissed = own.id == nil
                    return own.id
                }
                if let id { engine.pause(id, directions) }
            }
            recorder.deliver(event)
        }
        // A paused transfer receives no body, but it may have delivered the head before its id was known.
        let isMissed = own.withLock { own in
            own.id = id
            return own.isMissed
        }
        engine.resume(id)
        if isMissed { engine.pause(id, directions) }
        return (id, recorder)
    }

    /// Waits for the end of another transfer of 20 MB. A transfer that is not really paused would progress in that
    /// time.
    private func letTimePass() async {
        _ = await engine.run(TransferRequest(server, "/large"))
    }

    /// The idle timeout of a transfer that must not be idle for so long, even on a busy machine.
    private static let idleTimeout = Duration.seconds(10)

    /// Waits for the idle timeout of another transfer, which is longer than the idle timeouts in these tests.
    private func letIdleTimeoutPass() async {
        var request = TransferRequest(server, "/silent")
        request.idleTimeout = Self.idleTimeout + .seconds(2)
        #expect(await engine.run(request).failure?.code == 28)
    }

    // MARK: Receiving

    @Test func `a transfer paused before it is connected delivers no body and buffers little`() async throws {
        let recorder = TransferRecorder()
        let id = await engine.start(TransferRequest(server, "/large"), pausing: .receiving, recorder)
        await server.requests(atLeast: 1)
        await letTimePass()
        #expect(recorder.record.body.isEmpty)
        #expect(recorder.record.progress.allSatisfy { $0.received <= 64 * 1024 })
        engine.resume(id)
        let record = await recorder.end()
        #expect(record.hasSucceeded)
        #expect(record.body == Self.large)
    }

    @Test func `a transfer paused during the response's body stops there`() async throws {
        let request = TransferRequest(server, "/large")
        let (_, recorder) = await start(request, pausing: .receiving, at: { $0.isBody })
        await recorder.wait { !$0.body.isEmpty }
        await engine.settle()
        let stopped = recorder.record
        await letTimePass()
        #expect(stopped.body.count < Self.large.count)
        #expect(recorder.record.body.count == stopped.body.count)
        #expect(try #require(recorder.record.progress.last).received <= stopped.body.count + 64 * 1024)
    }

    @Test func `a transfer paused during its name lookup delivers nothing`() async throws {
        let gate = LookupGate()
        let engine = try TransferEngine(resolver: gate.resolver)
        var request = TransferRequest(url: "http://netwatch.invalid:\(server.port)/large")
        request.connectTimeout = .seconds(3600)
        let recorder = TransferRecorder()
        let id = engine.start(request) { recorder.deliver($0) }
        await gate.isEntered()
        engine.pause(id, .receiving)
        await engine.settle()
        gate.open()
        await server.requests(atLeast: 1)
        await letTimePass()
        #expect(recorder.record.body.isEmpty)
        engine.resume(id)
        #expect(await recorder.end().body == Self.large)
    }

    @Test func `a transfer resumed during its name lookup continues`() async throws {
        let gate = LookupGate()
        let engine = try TransferEngine(resolver: gate.resolver)
        var request = TransferRequest(url: "http://netwatch.invalid:\(server.port)/large")
        request.connectTimeout = .seconds(3600)
        let recorder = TransferRecorder()
        let id = engine.start(request) { recorder.deliver($0) }
        await gate.isEntered()
        engine.pause(id, .all)
        engine.resume(id)
        await engine.settle()
        gate.open()
        #expect(await recorder.end().hasSucceeded)
    }

    @Test func `a transfer can be paused with each piece of its body`() async throws {
        let request = TransferRequest(server, "/large")
        let (id, recorder) = await start(request, pausing: .receiving, at: { $0.isBody })
        var steps = 0
        while recorder.record.ends.isEmpty {
            let count = recorder.record.body.count
            engine.resume(id)
            await recorder.wait { $0.body.count > count || !$0.ends.isEmpty }
            steps += 1
        }
        #expect(recorder.record.body == Self.large)
        #expect(steps > 2)
    }

    @Test func `an end during a pause is reported after the pause`() async throws {
        let closing = try ScriptedServer { _ in .send("HTTP/1.0 200 OK\r\n\r\nabc", then: .close) }
        let recorder = TransferRecorder()
        let id = await engine.start(TransferRequest(url: closing.url), pausing: .receiving, recorder)
        await closing.requests(atLeast: 1)
        await closing.openConnections(atMost: 0)
        await letTimePass()
        #expect(recorder.record.ends.isEmpty)
        engine.resume(id)
        #expect(await recorder.end().text == "abc")
        #expect(recorder.record.hasSucceeded)
    }

    @Test func `data kept by libcurl beyond the body limit fails the transfer`() async throws {
        var request = TransferRequest(server, "/large")
        request.maximumResponseBodyBytes = 10
        let recorder = TransferRecorder()
        let id = await engine.start(request, pausing: .receiving, recorder)
        await server.requests(atLeast: 1)
        await letTimePass()
        engine.resume(id)
        let record = await recorder.end()
        #expect(record.failure?.code == 63)
        #expect(record.body.count == 10)
        await engine.settle()
        #expect(recorder.record.ends.count == 1)
    }

    @Test func `a paused transfer can be cancelled`() async throws {
        let request = TransferRequest(server, "/large")
        let (id, recorder) = await start(request, pausing: .all, at: { $0.isBody })
        await recorder.wait { !$0.body.isEmpty }
        engine.cancel(id)
        engine.resume(id)
        #expect(await recorder.end().failure?.code == 42)
    }

    // MARK: Sending

    @Test func `a transfer paused before it is connected sends nothing of its body`() async throws {
        let recorder = TransferRecorder()
        let request = TransferRequest(server, method: "PUT", body: .bytes(Self.large))
        let id = await engine.start(request, pausing: .sending, recorder)
        await letTimePass()
        #expect(recorder.record.progress.allSatisfy { $0.sent == 0 })
        #expect(server.requests.allSatisfy { $0.method == "GET" })
        engine.resume(id)
        #expect(await recorder.end().body == Self.large)
    }

    @Test func `a transfer paused during the request's body stops there`() async throws {
        let request = TransferRequest(server, method: "PUT", body: .bytes(Self.large))
        let (id, recorder) = await start(request, pausing: .sending) {
            if case .progress(let progress) = $0 { progress.sent < 5_000_000 } else { false }
        }
        await recorder.wait { $0.progress.contains { $0.sent > 0 } }
        await engine.settle()
        let stopped = recorder.record.progress.last
        await letTimePass()
        #expect(recorder.record.progress.last == stopped)
        #expect(try #require(stopped).sent < Self.large.count)
        while recorder.record.ends.isEmpty {
            let sent = recorder.record.progress.last?.sent ?? 0
            engine.resume(id)
            await recorder.wait { $0.progress.last?.sent ?? 0 > sent || !$0.ends.isEmpty }
        }
        #expect(await recorder.end().body == Self.large)
    }

    @Test func `a pause and the wait for a source do not end each other`()
        async throws
    {
        let source = SteppedSource(length: 2)
        let recorder = TransferRecorder()
        let request = TransferRequest(server, method: "PUT", body: .source(source))
        let id = engine.start(request) { recorder.deliver($0) }
        _ = await server.peers(atLeast: 1)
        engine.pause(id, .sending)
        await engine.settle()
        source.add(.bytes([1]))
        await letTimePass()
        #expect(recorder.record.progress.allSatisfy { $0.sent == 0 })
        engine.resume(id)
        await recorder.wait { $0.progress.last?.sent == 1 }
        engine.pause(id, .receiving)
        engine.resume(id)
        await engine.settle()
        source.add(.bytes([2]), .end)
        #expect(await recorder.end().body == [1, 2])
    }

    // MARK: The idle timeout

    @Test(arguments: [TransferPause.receiving, .sending, .all])
    func `a pause does not count towards the idle timeout`(pause: TransferPause) async throws {
        var request = TransferRequest(server, method: "PUT", body: .bytes(Self.large))
        request.idleTimeout = Self.idleTimeout
        let recorder = TransferRecorder()
        let id = await engine.start(request, pausing: pause, recorder)
        await letIdleTimeoutPass()
        #expect(recorder.record.ends.isEmpty)
        engine.resume(id)
        #expect(await recorder.end().body == Self.large)
    }

    @Test func `a pause since the name lookup does not count towards the idle timeout`() async throws {
        let gate = LookupGate()
        let engine = try TransferEngine(resolver: gate.resolver)
        var request = TransferRequest(url: "http://netwatch.invalid:\(server.port)/", method: "PUT")
        request.body = .bytes(Self.large)
        request.connectTimeout = .seconds(3600)
        request.idleTimeout = Self.idleTimeout
        let recorder = TransferRecorder()
        let id = engine.start(request) { recorder.deliver($0) }
        await gate.isEntered()
        engine.pause(id, .sending)
        await engine.settle()
        gate.open()
        await letIdleTimeoutPass()
        #expect(recorder.record.ends.isEmpty)
        engine.resume(id)
        #expect(await recorder.end().body == Self.large)
    }

    @Test func `a pause during silence restarts the idle timeout`()
        async throws
    {
        var request = TransferRequest(server, "/falling-silent")
        request.idleTimeout = Self.idleTimeout
        let (id, recorder) = await start(request, pausing: .receiving, at: { $0.isHead })
        await recorder.wait { !$0.heads.isEmpty }
        await letIdleTimeoutPass()
        #expect(recorder.record.ends.isEmpty)
        let resumed = ContinuousClock.now
        engine.resume(id)
        #expect(await recorder.end().failure?.code == 28)
        #expect(resumed.duration(to: .now) >= Self.idleTimeout)
    }
}

extension TransferEvent {
    fileprivate var isHead: Bool { if case .head = self { true } else { false } }
    fileprivate var isBody: Bool { if case .body = self { true } else { false } }
}

extension TransferEngine {
    fileprivate func start(
        _ request: TransferRequest,
        pausing directions: TransferPause,
        _ recorder: TransferRecorder
    ) -> TransferID {
        start(request, pausing: directions) { recorder.deliver($0) }
    }

    /// Starts a transfer and pauses it in one turn of the engine's thread, so that nothing happens in between.
    fileprivate func start(
        _ request: TransferRequest,
        pausing directions: TransferPause,
        _ deliver: @escaping @Sendable (TransferEvent) -> Void
    ) -> TransferID {
        let id = start(request, deliver: deliver)
        pause(id, directions)
        return id
    }
}
