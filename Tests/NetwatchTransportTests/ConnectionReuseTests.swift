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

    @Test func `a response on an idle connection closes the connection`() async throws {
        let server = try ScriptedServer { $0.number == 1 ? Self.respondTwice("first") : .respond("second") }
        #expect(await engine.run(TransferRequest(url: server.url)).text == "first")
        server.release()
        await server.openConnections(atMost: 0)
        #expect(await engine.run(TransferRequest(url: server.url)).text == "second")
        #expect(server.requests.map(\.connection) == [1, 2])
    }

    @Test func `a response that arrives just before the request is not used for it`() async throws {
        let server = try ScriptedServer { $0.number == 1 ? Self.respondTwice("first") : .respond("second") }
        #expect(await engine.run(TransferRequest(url: server.url)).text == "first")
        let second = await runAfterArrival(of: server)
        #expect(second.text == "second")
        #expect(second.metrics?.reusedConnection == false)
    }

    /// Runs a transfer that begins in the same turn of the loop in which the server's stray response arrives.
    private func runAfterArrival(of server: ScriptedServer) async -> TransferRecorder.Record {
        let isQueued = Gate()
        engine.perform { _ in isQueued.wait() }
        engine.perform { _ in
            server.release()
            // The loop's thread must not return before the data is in the socket, and the kernel reports that only when
            // it is asked.
            while !Self.hasUnreadData(from: server.port) { poll(nil, 0, 5) }
        }
        let recorder = TransferRecorder()
        engine.start(TransferRequest(url: server.url)) { recorder.deliver($0) }
        isQueued.open()
        return await recorder.end()
    }

    private static func hasUnreadData(from port: UInt16) -> Bool {
        (0..<4096).contains {
            WatchedSocket(descriptor: $0, number: 0).ends.remotePort == port && !WatchedSocket.isQuiet($0)
        }
    }
}
