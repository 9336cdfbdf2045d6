internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

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
}
