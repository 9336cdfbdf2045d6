internal import Glibc
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchTransport

/// The selection of connections for transfers. A request that must not arrive twice is sent only once.
@Suite(.timeLimit(.minutes(5))) struct ConnectionReuseTests {
    private let engine: TransferEngine

    init() throws {
        engine = try TransferEngine()
    }

    @Test func `a second transfer reuses the connection of the first`() async throws {
        let server = try ScriptedServer()
        for _ in 0..<2 { _ = await engine.run(TransferRequest(url: server.url)) }
        let third = await engine.run(TransferRequest(url: server.url))
        #expect(server.requests.map(\.connection) == [1, 1, 1])
        #expect(third.metrics?.reusedConnection == true)
    }

    @Test func `a transfer that does not allow reuse uses a new connection`() async throws {
        let server = try ScriptedServer()
        _ = await engine.run(TransferRequest(url: server.url))
        var request = TransferRequest(url: server.url, method: "POST")
        request.allowsConnectionReuse = false
        #expect(await engine.run(request).metrics?.reusedConnection == false)
        #expect(server.requests.map(\.connection) == [1, 2])
    }

    @Test func `libcurl resends a request when its reused connection closes`() async throws {
        // This test shows why `allowsConnectionReuse` exists. If it fails with a newer libcurl, the property may no
        // longer be needed.
        let server = try ScriptedServer.respondingOnce()
        _ = await engine.run(TransferRequest(url: server.url))
        _ = await engine.run(TransferRequest(url: server.url, method: "POST"))
        #expect(server.requests.count > 2)
    }

    @Test func `a transfer that does not allow reuse is sent once, whatever the server does`() async throws {
        let server = try ScriptedServer.respondingOnce()
        _ = await engine.run(TransferRequest(url: server.url))
        var request = TransferRequest(url: server.url, method: "POST")
        request.allowsConnectionReuse = false
        let failure = await engine.run(request).failure
        #expect(failure?.code == 52)
        #expect(failure?.phase == .response)
        #expect(failure?.reusedConnection == false)
        #expect(server.requests.count == 2)
    }

    @Test func `after a renewal the old connections are closed`() async throws {
        let server = try ScriptedServer()
        _ = await engine.run(TransferRequest(url: server.url))
        engine.renewConnections()
        _ = await engine.run(TransferRequest(url: server.url))
        #expect(server.requests.map(\.connection) == [1, 2])
        await server.openConnections(atMost: 1)
    }

    @Test func `a running transfer continues after a renewal`() async throws {
        let server = try ScriptedServer { _ in .stall(then: .respond("late")) }
        let recorder = TransferRecorder()
        engine.start(TransferRequest(url: server.url)) { recorder.deliver($0) }
        await server.requests(atLeast: 1)
        engine.renewConnections()
        server.release()
        #expect(await recorder.end().text == "late")
        await server.openConnections(atMost: 0)
    }

    // MARK: Responses without a request

    private static func response(_ body: String) -> String {
        "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    /// Sends a response, and later another one that no request has asked for.
    private static func respondTwice(_ body: String) -> ScriptedServer.Action {
        .send(response(body), then: .stall(then: .send(response("stray"), then: .keep)))
    }

    /// A kind of server, with the request for it.
    enum Transport: CaseIterable { case tcp, unixSocket }

    /// Makes a server that sends a stray response after the response to its first request.
    private func strayServer(_ transport: Transport) throws -> (ScriptedServer, TransferRequest) {
        let respond: @Sendable (ScriptedServer.Request) -> ScriptedServer.Action = {
            $0.number == 1 ? Self.respondTwice("first") : .respond("second")
        }
        guard transport == .unixSocket else {
            let server = try ScriptedServer(respond)
            return (server, TransferRequest(url: server.url))
        }
        let path = temporarySocketPath()
        let server = try ScriptedServer(unixPath: path, respond)
        var request = TransferRequest(url: "http://localhost/")
        request.unixSocketPath = path
        return (server, request)
    }

    @Test(arguments: Transport.allCases)
    func `a response on an idle connection closes the connection`(transport: Transport) async throws {
        let (server, request) = try strayServer(transport)
        defer { request.unixSocketPath.map { _ = unlink($0) } }
        #expect(await engine.run(request).text == "first")
        server.release()
        await server.openConnections(atMost: 0)
        #expect(await engine.run(request).text == "second")
        #expect(server.requests.map(\.connection) == [1, 2])
    }

    @Test(arguments: Transport.allCases)
    func `a response that arrives just before the request is not used for it`(
        transport: Transport
    ) async throws {
        let (server, request) = try strayServer(transport)
        defer { request.unixSocketPath.map { _ = unlink($0) } }
        #expect(await engine.run(request).text == "first")
        let second = await run(request, afterArrivalFrom: server)
        #expect(second.text == "second")
        #expect(second.metrics?.reusedConnection == false)
    }

    /// What a server does with an idle connection.
    enum Ending: CaseIterable { case endOfStream, strayResponse }

    @Test(arguments: Ending.allCases)
    func `the end of an idle connection that libcurl never watched is noticed`(ending: Ending) async throws {
        let isIdle = Gate()
        let (untilClosed, closed) = AsyncStream<Void>.makeStream()
        let server = try SocketServer { peer in
            peer.write(Array(Self.response("early").utf8))
            _ = peer.read()
            isIdle.wait()
            switch ending {
            case .endOfStream: peer.closeWrite()
            case .strayResponse: peer.write(Array(Self.response("stray").utf8))
            }
            _ = peer.readAll()
            closed.finish()
        }
        let request = TransferRequest(url: "http://127.0.0.1:\(server.port)/")
        #expect(await run(request, afterResponseFrom: server.port).text == "early")
        #expect(await idleConnections(to: "http://127.0.0.1:\(server.port)") == 1)
        isIdle.open()
        for await _ in untilClosed {}
        #expect(await idleConnections(to: "http://127.0.0.1:\(server.port)") == 0)
    }

    /// The number of idle connections to an origin that the first multi handle knows.
    private func idleConnections(to origin: String) async -> Int? {
        await withCheckedContinuation { continuation in
            engine.perform { engine in
                let connections = engine.multis[1]?.connections.idleHTTP1Connections(to: origin)
                continuation.resume(returning: connections?.count)
            }
        }
    }

    /// - Parameters:
    ///   - dirty: The connection that receives a response without a request.
    ///   - isNoticed: Whether the engine notices it before the next request begins.
    @Test(arguments: [1, 2], [true, false])
    func `a response on one unix socket costs no other connection`(dirty: Int, isNoticed: Bool) async throws {
        let path = temporarySocketPath()
        defer { unlink(path) }
        let server = try ScriptedServer(unixPath: path) {
            $0.number == dirty ? Self.respondTwice("first") : .respond("other")
        }
        var request = TransferRequest(url: "http://localhost/")
        request.unixSocketPath = path
        for allowsReuse in [true, false] {
            request.allowsConnectionReuse = allowsReuse
            #expect(await engine.run(request).hasSucceeded)
        }
        request.allowsConnectionReuse = true
        let third: TransferRecorder.Record
        if isNoticed {
            server.release()
            await server.openConnections(atMost: 1)
            third = await engine.run(request)
        } else {
            third = await run(request, afterArrivalFrom: server)
        }
        #expect(third.metrics?.reusedConnection == true)
        #expect(server.requests.map(\.connection) == [1, 2, 3 - dirty])
    }

    /// Runs a transfer that begins in the same turn of the loop in which the server's stray response arrives.
    private func run(
        _ request: TransferRequest,
        afterArrivalFrom server: ScriptedServer
    ) async -> TransferRecorder.Record {
        await engine.start(request, to: server.port) { server.release() }.end()
    }

    /// Runs a transfer over a new connection, on which the response of the server has arrived before libcurl reads for
    /// the first time. libcurl then never asks to watch the connection.
    private func run(
        _ request: TransferRequest,
        afterResponseFrom port: UInt16
    ) async -> TransferRecorder.Record {
        let isQueued = Gate()
        engine.perform { _ in isQueued.wait() }
        let recorder = TransferRecorder()
        engine.start(request) { recorder.deliver($0) }
        // The kernel connects the socket while this closure blocks the loop.
        engine.perform { _ in TransferEngine.waitForUnreadData(request, port) }
        isQueued.open()
        return await recorder.end()
    }

    @Test func `concurrent transfers reuse their connections to a unix socket`() async throws {
        let path = temporarySocketPath()
        defer { unlink(path) }
        let server = try ScriptedServer(unixPath: path) { .respond($0.target) }
        let engine = engine
        for round in 0..<20 {
            let texts = await withTaskGroup { group in
                for index in 0..<4 {
                    group.addTask {
                        var request = TransferRequest(url: "http://localhost/\(round)-\(index)")
                        request.unixSocketPath = path
                        return await engine.run(request).text
                    }
                }
                return await group.reduce(into: Set<String>()) { $0.insert($1) }
            }
            #expect(texts == Set((0..<4).map { "/\(round)-\($0)" }))
        }
        #expect(Set(server.requests.map(\.connection)).count <= 4)
    }
}
