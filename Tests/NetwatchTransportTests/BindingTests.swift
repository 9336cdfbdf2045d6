internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// Transfers that are bound to an interface instead of the kernel's route.
@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .timeLimit(.minutes(5))
)
struct BindingTests {
    private let testbed: TwoCableTestbed
    private let engine: TransferEngine

    init() throws {
        testbed = try TwoCableTestbed()
        engine = try TransferEngine(
            resolver: .answering(TwoCableTestbed.host),
            networkNamespace: testbed.near.path
        )
    }

    private func server(_ script: @escaping ScriptedServer.Script = { _ in .respond("") }) throws
        -> ScriptedServer
    {
        try ScriptedServer(address: TwoCableTestbed.host, in: testbed.far, script)
    }

    private func request(_ url: String, over cable: TwoCableTestbed.Cable?) -> TransferRequest {
        var request = TransferRequest(url: url)
        request.connectTimeout = .seconds(60)
        request.binding = cable?.binding
        return request
    }

    @Test func `a bound transfer uses its interface, not the preferred route's`() async throws {
        let server = try server()
        for cable in [nil, testbed.first, testbed.second] {
            #expect(await engine.run(request(server.url, over: cable)).head?.status == 200)
        }
        let second = testbed.second.source
        #expect(server.peers == [second, testbed.first.source, second])
    }

    @Test func `a bound transfer neither reuses a connection nor leaves one in the pool`() async throws {
        let server = try server()
        for cable in [nil, testbed.second, testbed.second, nil] {
            _ = await engine.run(request(server.url, over: cable))
        }
        #expect(server.requests.map(\.connection) == [1, 2, 3, 1])
        await server.openConnections(atMost: 1)
    }

    @Test func `the connection has the requested source address`() async throws {
        try testbed.near.ip("addr add 192.0.2.9/24 dev near0")
        let server = try server()
        var request = request(server.url, over: testbed.first)
        let source = try #require(IPAddress("192.0.2.9"))
        request.binding = SocketBinding(
            interfaceIndex: testbed.first.index,
            source: source,
            family: .ipv4
        )
        _ = await engine.run(request)
        #expect(server.peers == [source])
    }

    @Test func `a missing source address fails with its error, and nothing is sent`() async throws {
        let server = try server()
        try testbed.near.ip("addr del \(testbed.second.source)/24 dev near1")
        let failure = await engine.run(request(server.url, over: testbed.second)).failure
        #expect(failure?.code == 45)
        #expect(failure?.osErrno == EADDRNOTAVAIL)
        #expect(failure?.phase == .connect)
        #expect(server.peers.isEmpty)
    }

    @Test func `a missing interface fails with its error, and nothing is sent`() async throws {
        let server = try server()
        var request = request(server.url, over: nil)
        request.binding = SocketBinding(
            interfaceIndex: testbed.second.index,
            source: nil,
            family: .ipv4
        )
        try testbed.near.ip("link del near1")
        let failure = await engine.run(request).failure
        #expect(failure?.code == 7)
        #expect(failure?.osErrno == ENODEV)
        #expect(server.peers.isEmpty)
    }

    @Test func `a transfer with given addresses connects without a lookup`() async throws {
        let server = try server()
        var request = request("http://netwatch.invalid:\(server.port)/", over: testbed.first)
        request.candidates = [
            ConnectionCandidate(try #require(IPAddress(TwoCableTestbed.host)), binding: request.binding)
        ]
        let engine = try TransferEngine(
            resolver: NameResolver { _ in .failure(.init(code: EAI_NONAME)) },
            networkNamespace: testbed.near.path
        )
        #expect(await engine.run(request).head?.status == 200)
        #expect(server.requests.first?.values(of: "Host") == ["netwatch.invalid:\(server.port)"])
    }

    @Test func `a name without an address of the bound family fails`() async throws {
        let server = try server()
        let way = SocketBinding(interfaceIndex: testbed.first.index, source: nil, family: .ipv6)
        for url in [server.url, "http://netwatch.invalid:\(server.port)/"] {
            var request = TransferRequest(url: url)
            request.binding = way
            let failure = await engine.run(request).failure
            #expect(failure?.code == 6)
            #expect(failure?.message == "the host has no IPv6 address")
        }
        var request = TransferRequest(url: "http://netwatch.invalid/")
        request.candidates = []
        #expect(await engine.run(request).failure?.message == "the host has no address")
    }

    @Test func `a unix socket cannot be bound to an interface`() async {
        var request = request("http://netwatch/", over: testbed.first)
        request.unixSocketPath = "/run/netwatch.sock"
        #expect(await engine.run(request).failure?.code == 43)
    }
}
