internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchTransport

/// Transfers whose packets were lost when the carrier was lost.
@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .timeLimit(.minutes(5))
)
struct StalledTransferTests {
    private let testbed: TwoCableTestbed
    private let engine: TransferEngine
    private let pool: TransferPool
    private let server: ScriptedServer

    init() throws {
        testbed = try TwoCableTestbed()
        // Without this, the kernel keeps the packets until it has found the neighbour, and then sends them even if the
        // connection is gone.
        try testbed.knowNeighbour()
        engine = try TransferEngine(networkNamespace: testbed.near.path)
        pool = TransferPool(engine: engine)
        server = try ScriptedServer(address: TwoCableTestbed.host, in: testbed.far) { _ in .respond("") }
    }

    private func setCarrier(_ isUp: Bool) throws {
        try testbed.far.ip("link set far1 \(isUp ? "up" : "down")")
        try testbed.near.wait(until: "-br link show near1", prints: isUp ? " UP " : " DOWN ")
    }

    /// Waits until the output of ss(8) for the sockets of the near side satisfies a condition.
    private func sockets(where isWanted: (String) -> Bool) async throws {
        try await poll(every: .milliseconds(10)) { try isWanted(testbed.near.shell("ss -Htna")) }
    }

    /// Matches a connection with bytes that the peer has not acknowledged, in the output of ss(8).
    private static var undelivered: some RegexComponent { #/ESTAB +0 +[1-9]/# }

    /// Starts a request over a reused connection while there is no carrier. Returns when the request was sent, so that
    /// it is lost.
    private func lost(_ change: (inout TransferRequest) -> Void = { _ in }) async throws
        -> (id: TransferID, recorder: TransferRecorder)
    {
        var request = TransferRequest(url: server.url, method: "POST")
        change(&request)
        var first = TransferRequest(url: request.url)
        first.trust = request.trust
        _ = await pool.run(first)
        // Over HTTP/2, the client acknowledges the server's settings. If the carrier is lost before the server's kernel
        // has received that, the unacknowledged bytes are not those of the next request.
        try await sockets { !$0.contains(Self.undelivered) }
        try setCarrier(false)
        request.url += "/lost"
        let recorder = TransferRecorder()
        let id = pool.start(request) { (event: TransferEvent) in recorder.deliver(event) }
        try await sockets { $0.contains(Self.undelivered) }
        return (id, recorder)
    }

    private func lostRequest(_ change: (inout TransferRequest) -> Void = { _ in }) async throws
        -> TransferRecorder
    {
        try await lost(change).recorder
    }

    private func restartStalled(_ url: String) throws {
        pool.restartStalled(to: TwoCableTestbed.host, port: try TransferOrigin(url: url).port)
    }

    @Test func `a lost request is sent over a new connection only`() async throws {
        let recorder = try await lostRequest()
        try restartStalled(server.url)
        try await sockets { $0.contains("SYN-SENT") }
        try setCarrier(true)
        #expect(await recorder.end().head?.status == 200)
        #expect(server.requests.map(\.target) == ["/", "/lost"])
        #expect(server.requests.map(\.connection) == [1, 2])
    }

    @Test func `a request that must not arrive twice stays on its connection`() async throws {
        let recorder = try await lostRequest { $0.allowsResending = false }
        try restartStalled(server.url)
        await engine.settle()
        try setCarrier(true)
        #expect(await recorder.end().head?.status == 200)
        #expect(server.requests.map(\.connection) == [1, 1])
    }

    @Test(arguments: [("192.0.2.1", 0), (TwoCableTestbed.host, 1)])
    func `a request to another host or port is not restarted`(host: String, offset: Int) async throws {
        let recorder = try await lostRequest()
        pool.restartStalled(to: host, port: Int(server.port) ^ offset)
        await engine.settle()
        try setCarrier(true)
        await recorder.end()
        #expect(server.requests.map(\.connection) == [1, 1])
    }

    @Test func `a request that the server has acknowledged is not restarted`() async throws {
        let slow = try ScriptedServer(address: TwoCableTestbed.host, in: testbed.far) { _ in
            .stall(then: .respond(""))
        }
        let recorder = pool.start(TransferRequest(url: slow.url))
        await slow.requests(atLeast: 1)
        // The server may have the request before this machine's kernel has received the acknowledgement.
        try await sockets { $0.contains(#/ESTAB +0 +0/#) }
        try setCarrier(false)
        try restartStalled(slow.url)
        await engine.settle()
        try setCarrier(true)
        slow.release()
        #expect(await recorder.end().head?.status == 200)
        #expect(slow.requests.count == 1)
    }

    @Test func `an upload that cannot rewind stays on its connection`() async throws {
        let recorder = try await lostRequest {
            let source = SteppedSource(length: 3, [.bytes([1, 2, 3]), .end], isRewindable: false)
            $0.body = .source(source)
        }
        try restartStalled(server.url)
        await engine.settle()
        try setCarrier(true)
        #expect(await recorder.end().head?.status == 200)
        #expect(server.requests.map(\.connection) == [1, 1])
    }

    /// Returns an HTTP/2 server that completes the handshake of its first connection only.
    private func secureServer() throws -> HostileHTTP2Server {
        try HostileHTTP2Server("no-handshake-again", address: TwoCableTestbed.host, in: testbed.far)
    }

    private var anyServer: TransferTrust {
        var trust = TransferTrust()
        (trust.anchors, trust.checksHost) = (nil, false)
        return trust
    }

    @Test(.enabled(if: TestAuthority.isAvailable, "needs openssl"))
    func `a lost HTTP/2 request leaves its connection and counts as unsent`()
        async throws
    {
        let secure = try secureServer()
        let (id, recorder) = try await lost { ($0.url, $0.trust) = (secure.url, anyServer) }
        try restartStalled(secure.url)
        try await sockets { $0.contains("SYN-SENT") }
        #expect(try !testbed.near.shell("ss -Htna").contains("ESTAB"), "the connection is reset")
        try setCarrier(true)
        try await sockets { $0.contains("ESTAB") }
        await engine.settle()
        engine.cancel(id)
        let failure = try #require(await recorder.end().failure)
        #expect([.connect, .tls].contains(failure.phase), "\(failure)")
    }

    @Test(.enabled(if: TestAuthority.isAvailable, "needs openssl"))
    func `cancelling an undelivered HTTP/2 request resets its connection`() async throws {
        let secure = try secureServer()
        let (id, recorder) = try await lost { ($0.url, $0.trust) = (secure.url, anyServer) }
        engine.cancel(id)
        await recorder.end()
        try await sockets { $0.isEmpty }
    }

    @Test func `a connecting transfer connects again immediately`() async throws {
        try setCarrier(false)
        let recorder = pool.start(TransferRequest(url: server.url))
        try await sockets { $0.contains("SYN-SENT") }
        let before = try testbed.near.shell("ss -Htna")
        try restartStalled(server.url)
        try await sockets { $0.contains("SYN-SENT") && $0 != before }
        try setCarrier(true)
        #expect(await recorder.end().head?.status == 200)
        #expect(server.connectionCount == 1)
    }

    @Test func `the kernel discards the undelivered bytes of a cancelled request`() async throws {
        let (id, recorder) = try await lost()
        engine.cancel(id)
        await recorder.end()
        try await sockets { $0.isEmpty }
        try setCarrier(true)
        _ = await pool.run(TransferRequest(url: server.url + "/next"))
        #expect(server.requests.map(\.target) == ["/", "/next"])
    }
}
