internal import Dispatch
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Synchronization
internal import Testing

@testable internal import NetwatchTransport

/// A session's pool: separate connections, and a connection limit.
@Suite(.timeLimit(.minutes(5))) struct TransferPoolTests {
    private let engine: TransferEngine

    init() throws {
        engine = try TransferEngine()
    }

    @Test func `pools do not share connections`() async throws {
        let server = try ScriptedServer()
        let pools = [TransferPool(engine: engine), TransferPool(engine: engine)]
        for pool in pools + pools { _ = await pool.run(TransferRequest(server)) }
        #expect(server.requests.map(\.connection) == [1, 2, 1, 2])
    }

    @Test func `transfers beyond the connection limit wait`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .respond("late")) }
        let pool = TransferPool(engine: engine, connectionsPerHost: 2)
        let recorders = (0..<5).map { _ in pool.start(TransferRequest(server)) }
        await server.requests(atLeast: 2)
        await engine.settle()
        #expect(server.connectionCount == 2)
        server.release()
        for recorder in recorders { #expect(await recorder.end().text == "late") }
        #expect(server.connectionCount == 2)
    }

    @Test func `a transfer ends without a path to its address if its response has not begun`() async throws {
        let server = try ScriptedServer { request in
            request.target == "/begun"
                ? .send(
                    "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n",
                    then: .stall(then: .send("body", then: .keep))
                )
                : .stall(then: .respond("late"))
        }
        let pool = TransferPool(engine: engine)
        let other = TransferPool(engine: engine)
        let begun = pool.start(TransferRequest(server, "/begun"))
        let waiting = pool.start(TransferRequest(server))
        let others = other.start(TransferRequest(server))
        await begun.wait { !$0.heads.isEmpty }
        await server.requests(atLeast: 3)
        for (address, port) in [("127.0.0.2", server.port), ("127.0.0.1", server.port ^ 1)] {
            pool.endUnanswered(by: ConnectionPeer(address: try #require(IPAddress(address)), port: port))
        }
        await engine.settle()
        #expect(waiting.record.ends.isEmpty)
        pool.endUnanswered(
            by: ConnectionPeer(address: try #require(IPAddress("127.0.0.1")), port: server.port)
        )
        let failure = await waiting.end().failure
        #expect(failure?.code == 56)
        #expect(failure?.message == "the path to 127.0.0.1 was lost")
        server.release()
        #expect(await begun.end().text == "body")
        #expect(await others.end().text == "late")
    }

    @Test(.enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"))
    func `a connection to another machine is reported, but not one to this machine`() async throws {
        let testbed = try VethTestbed()
        let engine = try TransferEngine(networkNamespace: testbed.near.path)
        let far = try ScriptedServer(address: VethTestbed.farAddress, in: testbed.far)
        let peer = ConnectionPeer(address: try #require(IPAddress(VethTestbed.farAddress)), port: far.port)
        #expect(await engine.run(TransferRequest(far)).connections == [peer])
        let near = try ScriptedServer(address: "127.0.0.1", in: testbed.near)
        let record = await engine.run(TransferRequest(near))
        #expect(record.hasSucceeded)
        #expect(record.connections.isEmpty)
    }

    @Test func `waiting transfers start in the order of their priority`() async throws {
        let server = try ScriptedServer { $0.number == 1 ? .stall(then: .respond("")) : .respond("") }
        let pool = TransferPool(engine: engine, connectionsPerHost: 1)
        let first = pool.start(TransferRequest(server, "/first"))
        await server.requests(atLeast: 1)
        let others = [0.25, 0.5, 0.75].map { priority in
            pool.start(TransferRequest(server, "/\(priority)") { $0.priority = Float(priority) })
        }
        await engine.settle()
        server.release()
        for recorder in [first] + others { await recorder.end() }
        #expect(server.requests.map(\.target) == ["/first", "/0.75", "/0.5", "/0.25"])
    }

    @Test func `a waiting transfer can be cancelled and is never sent`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .respond("")) }
        let pool = TransferPool(engine: engine, connectionsPerHost: 1)
        let first = pool.start(TransferRequest(server))
        let waiting = TransferRecorder()
        let id = pool.start(TransferRequest(server, "/waiting")) { waiting.deliver($0) }
        let third = pool.start(TransferRequest(server, "/third"))
        engine.cancel(id)
        let failure = await waiting.end().failure
        #expect(failure?.code == 42)
        #expect(failure?.phase == .prepare)
        server.release()
        await first.end()
        #expect(await third.end().hasSucceeded)
        #expect(server.requests.map(\.target) == ["/", "/third"])
    }

    @Test func `waiting counts towards the total timeout, not the connect timeout`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .respond("")) }
        let pool = TransferPool(engine: engine, connectionsPerHost: 1)
        let first = pool.start(TransferRequest(server))
        var patient = TransferRequest(server, "/patient")
        patient.connectTimeout = .seconds(6)
        let second = pool.start(patient)
        var impatient = TransferRequest(server, "/impatient")
        impatient.totalTimeout = .seconds(8)
        let failure = await pool.start(impatient).end().failure
        #expect(failure?.code == 28)
        #expect(failure?.phase == .prepare)
        server.release()
        await first.end()
        // The transfer has waited for longer than its connection timeout.
        #expect(await second.end().hasSucceeded)
    }

    @Test func `a waiting transfer can be paused`() async throws {
        let server = try ScriptedServer { $0.number == 1 ? .stall(then: .respond("")) : .respond("text") }
        let pool = TransferPool(engine: engine, connectionsPerHost: 1)
        let first = pool.start(TransferRequest(server))
        let waiting = TransferRecorder()
        let id = pool.start(TransferRequest(server, "/waiting")) { waiting.deliver($0) }
        engine.pause(id, .all)
        server.release()
        await first.end()
        await waiting.wait { !$0.heads.isEmpty }
        #expect(waiting.record.body.isEmpty)
        engine.resume(id)
        #expect(await waiting.end().text == "text")
    }

    @Test func `renewing connections affects one pool only`() async throws {
        let server = try ScriptedServer()
        let pools = [TransferPool(engine: engine), TransferPool(engine: engine)]
        for pool in pools { _ = await pool.run(TransferRequest(server)) }
        pools[0].renewConnections()
        for pool in pools { _ = await pool.run(TransferRequest(server)) }
        #expect(server.requests.map(\.connection) == [1, 2, 3, 2])
    }

    @Test func `a released pool closes its connections after its last transfer`() async throws {
        let server = try ScriptedServer { $0.number == 1 ? .respond("") : .stall(then: .respond("late")) }
        var pool: TransferPool? = TransferPool(engine: engine)
        _ = await pool?.run(TransferRequest(server))
        let recorder = pool?.start(TransferRequest(server))
        await server.requests(atLeast: 2)
        pool = nil
        server.release()
        #expect(await recorder?.end().text == "late")
        await server.openConnections(atMost: 0)
    }

    @Test func `transfers of a released pool end normally, and its multi handles are closed`() async throws {
        let gate = LookupGate()
        let engine = try TransferEngine(resolver: gate.resolver)
        let server = try ScriptedServer { _ in .stall(then: .respond("late")) }
        var pool: TransferPool? = TransferPool(engine: engine, connectionsPerHost: 1)
        let running = pool?.start(TransferRequest(server))
        await server.requests(atLeast: 1)
        let waiting = pool?.start(TransferRequest(server, "/waiting"))
        var named = TransferRequest(url: "http://netwatch.invalid:\(server.port)/")
        // This timeout is longer than any delay in this test.
        named.connectTimeout = .seconds(600)
        let lookingUp = pool?.start(named)
        await gate.isEntered()
        pool = nil
        await engine.settle()
        gate.open()
        server.release()
        for recorder in [running, waiting, lookingUp] { #expect(await recorder?.end().text == "late") }
        await server.openConnections(atMost: 0)
        #expect(await engine.multiCount == 0)
    }

    @Test func `after a renewal a name is looked up again, even if a lookup is running`() async throws {
        let gate = Gate()
        let asked = Recorder<String>()
        let lookups = Atomic(0)
        let resolver = NameResolver { name in
            let number = lookups.add(1, ordering: .relaxed).newValue
            asked.record(name)
            if number == 1 { gate.wait() }
            return .success([IPAddress("127.0.0.1")!])
        }
        let server = try ScriptedServer()
        let pool = TransferPool(engine: try TransferEngine(resolver: resolver))
        let request = TransferRequest(url: "http://netwatch.invalid:\(server.port)/")
        let first = pool.start(request)
        try await asked.wait { $0.count == 1 }
        pool.renewConnections()
        // The first lookup is still running, but no transfer waits for it.
        #expect(await pool.run(request).hasSucceeded)
        #expect(await first.end().hasSucceeded)
        gate.open()
    }

    @Test func `an idle connection that the server closes is not reused`() async throws {
        let server = try ScriptedServer { _ in
            .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", then: .close)
        }
        let pool = TransferPool(engine: engine)
        for _ in 0..<3 {
            let record = await pool.run(TransferRequest(server))
            #expect(record.hasSucceeded)
            await server.openConnections(atMost: 0)
        }
        #expect(server.requests.map(\.connection) == [1, 2, 3])
    }

    @Test func `as many connections are kept as there were concurrent transfers`() async throws {
        let count = 300
        let gate = DispatchSemaphore(value: 0)
        let server = try ScriptedServer { _ in
            gate.wait()
            return .respond("")
        }
        let pool = TransferPool(engine: engine, connectionsPerHost: count)
        for round in 1...2 {
            let recorders = (0..<count).map { _ in pool.start(TransferRequest(server)) }
            await server.requests(atLeast: round * count)
            for _ in recorders { gate.signal() }
            for recorder in recorders { #expect(await recorder.end().hasSucceeded) }
        }
        #expect(server.connectionCount == count)
    }

    @Test func `many concurrent transfers all end`() async throws {
        let server = try ScriptedServer { _ in .respond("text") }
        let pool = TransferPool(engine: engine, connectionsPerHost: 16)
        let recorders = (0..<1_000).map { _ in pool.start(TransferRequest(server)) }
        for recorder in recorders { #expect(await recorder.end().text == "text") }
        #expect(server.connectionCount <= 16)
    }
}

extension TransferPool {
    func start(_ request: TransferRequest, deliver: @escaping @Sendable (TransferEvent) -> Void) -> TransferID
    {
        start(request) { (events: [TransferEvent]) in for event in events { deliver(event) } }
    }

    func start(_ request: TransferRequest) -> TransferRecorder {
        let recorder = TransferRecorder()
        _ = start(request) { (event: TransferEvent) in recorder.deliver(event) }
        return recorder
    }

    func run(_ request: TransferRequest) async -> TransferRecorder.Record {
        await start(request).end()
    }
}
