internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// Servers where one version of HTTP does not work.
@Suite(.timeLimit(.minutes(5)), .enabled(if: TestAuthority.isAvailable, "needs openssl"))
struct HTTPVersionTests {
    private let engine: TransferEngine

    init() throws {
        engine = try TransferEngine()
    }

    private func request(_ server: HostileHTTP2Server) -> TransferRequest {
        var request = TransferRequest(url: server.url)
        (request.trust.anchors, request.trust.checksHost) = (nil, false)
        return request
    }

    @Test(
        arguments: [
            "upgrade", "connection", "keep-alive", "proxy-connection", "pseudo-field", "control-character",
        ],
        [true, false]
    )
    func `after a response that is not valid in HTTP/2, the next transfer uses HTTP/1.1`(
        field: String,
        reusesConnections: Bool
    ) async throws {
        let server = try HostileHTTP2Server("http-1.1-\(field)")
        var request = request(server)
        request.allowsConnectionReuse = reusesConnections
        let failure = try #require(await engine.run(request).failure)
        #expect(failure.code == 92 && failure.phase == .response)
        #expect(failure.message.contains("the next request uses HTTP/1.1"))
        for _ in 1...2 {
            let record = await engine.run(request)
            #expect(record.hasSucceeded && record.metrics?.httpVersion == "http/1.1")
        }
    }

    @Test func `all sessions of an engine know where HTTP/2 has failed`() async throws {
        let server = try HostileHTTP2Server("http-1.1-upgrade")
        #expect(await engine.run(request(server)).failure?.code == 92)
        let recorder = TransferRecorder()
        let pool = TransferPool(engine: engine)
        pool.start(request(server)) { for event in $0 { recorder.deliver(event) } }
        #expect(await recorder.end().hasSucceeded)
    }

    @Test func `a server without HTTP/1.1 gets HTTP/2 again after HTTP/1.1 has failed`() async throws {
        let server = try HostileHTTP2Server("invalid")
        var codes: [Int32?] = []
        for _ in 1...4 { codes.append(await engine.run(request(server)).failure?.code) }
        // 8: the frames of HTTP/2 are not a response of HTTP/1.1.
        #expect(codes == [92, 8, 92, 8])
    }

    @Test(arguments: [("broken", nil), ("refused", Int32(92))])
    func `only a handshake that the server refuses because of the version changes the version`(
        handshake: String,
        next: Int32?
    ) async throws {
        let server = try HostileHTTP2Server("http-1.1-\(handshake)")
        #expect(await engine.run(request(server)).failure?.code == 92)
        #expect(await engine.run(request(server)).failure?.code == 35)
        // A success over HTTP/1.1, or the invalid response over HTTP/2.
        #expect(await engine.run(request(server)).failure?.code == next)
    }

    @Test func `the connection limit applies again after HTTP/2 has failed`() async throws {
        let server = try HostileHTTP2Server("http-1.1-second-upgrade")
        let pool = TransferPool(engine: engine, connectionsPerHost: 1)
        let first = TransferRecorder()
        let id = pool.start(request(server)) { for event in $0 { first.deliver(event) } }
        await first.wait { !$0.heads.isEmpty }
        #expect(await pool.run(request(server)).failure?.code == 92)
        var waiting = request(server)
        waiting.totalTimeout = .milliseconds(200)
        let failure = await pool.run(waiting).failure
        #expect(failure?.code == 28 && failure?.phase == .prepare)
        engine.cancel(id)
        await first.end()
        #expect(await pool.run(request(server)).metrics?.httpVersion == "http/1.1")
    }

    @Test(arguments: [true, false])
    func `a transfer that requires HTTP/1.1 uses it at once, and others use HTTP/2`(
        reusesConnections: Bool
    ) async throws {
        let server = try HostileHTTP2Server("http-1.1-upgrade")
        var required = request(server)
        (required.usesHTTP1, required.allowsConnectionReuse) = (true, reusesConnections)
        for _ in 1...2 {
            let record = await engine.run(required)
            #expect(record.hasSucceeded && record.metrics?.httpVersion == "http/1.1")
        }
        #expect(await engine.run(request(server)).failure?.code == 92)
    }

    @Test func `transfers that require HTTP/1.1 have a separate connection limit`() async throws {
        let server = try HostileHTTP2Server("http-1.1-open")
        let pool = TransferPool(engine: engine, connectionsPerHost: 1)
        let (multiplexed, single) = (TransferRecorder(), TransferRecorder())
        let first = pool.start(request(server)) { for event in $0 { multiplexed.deliver(event) } }
        await multiplexed.wait { !$0.heads.isEmpty }
        var required = request(server)
        required.usesHTTP1 = true
        let second = pool.start(required) { for event in $0 { single.deliver(event) } }
        await single.wait { !$0.heads.isEmpty }
        required.totalTimeout = .milliseconds(200)
        let failure = await pool.run(required).failure
        #expect(failure?.code == 28 && failure?.phase == .prepare, "\(failure as Any)")
        for id in [first, second] { engine.cancel(id) }
        await multiplexed.end()
        await single.end()
    }
}
