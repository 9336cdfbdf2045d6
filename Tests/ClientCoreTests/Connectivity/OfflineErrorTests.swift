internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// The failures that count as offline (`URLError.notConnectedToInternet`), as the kernel's routes decide.
@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .timeLimit(.minutes(5))
)
struct OfflineErrorTests {
    private func code(_ session: SessionManager, _ url: String) async -> URLError.Code? {
        (await session.request(url).response().error as? URLError)?.code
    }

    @Test func `an unresolvable name counts as offline without a default route, and as not found with one`()
        async throws
    {
        let testbed = try OfflineTestbed()
        let response = await testbed.session.request("http://host.test/").response()
        #expect((response.error as? URLError)?.code == .notConnectedToInternet)
        #expect(response.error?.transferFailure?.code == 6)
        #expect(response.error?.transferFailure?.resolverCode == EAI_AGAIN)
        #expect((response.error as? URLError)?.failingURL?.host == "host.test")
        try testbed.connect()
        #expect(await code(testbed.session, "http://host.test/") == .cannotFindHost)
    }

    @Test(arguments: [
        ("blackhole", "blackhole route"), ("prohibit", "prohibited by a route or rule"),
        ("unreachable", "No route to host"),
    ])
    func `an address without a route counts as offline, whatever connect reports`(
        kind: String,
        reason: String
    ) async throws {
        let testbed = try OfflineTestbed(isConnected: true)
        try testbed.testbed.near.ip("route add \(kind) \(OfflineTestbed.host)")
        let response = await testbed.session.request("http://\(OfflineTestbed.host):1/").response()
        #expect((response.error as? URLError)?.code == .notConnectedToInternet)
        let text = response.error?.localizedDescription ?? ""
        let message = "\(OfflineTestbed.host): \(reason)"
        #expect(text == "no route to `\(OfflineTestbed.host)`: \(message)")
        #expect(response.error?.transferFailure?.message == message)
        #expect(response.error?.transferFailure?.code == 7)
    }

    @Test func `a rule that prohibits the port counts as offline`() async throws {
        let testbed = try OfflineTestbed(isConnected: true)
        try testbed.testbed.near.ip("rule add ipproto tcp dport 8080 prohibit")
        #expect(await code(testbed.session, "http://\(OfflineTestbed.host):8080/") == .notConnectedToInternet)
    }

    @Test func `a router without a route does not count as offline`() async throws {
        let testbed = try OfflineTestbed(isConnected: true)
        // The router reports the missing route by ICMP (RFC 792). The kernel then returns the same errno as for a
        // missing local route.
        try testbed.testbed.far.setParameter("net/ipv4/ip_forward", to: "1")
        try testbed.testbed.far.ip("route add unreachable 198.51.100.99")
        let response = await testbed.session.request("http://198.51.100.99/").response()
        #expect(response.error?.transferFailure?.osErrno == EHOSTUNREACH)
        #expect((response.error as? URLError)?.code == .cannotConnectToHost)
    }

    @Test func `a connect timeout counts as offline if the cable is unplugged`() async throws {
        let testbed = try OfflineTestbed(isConnected: true)
        // Makes the far side drop the packets without a reply.
        try testbed.testbed.far.ip("route add blackhole 198.51.100.99")
        try await timesOut(testbed, as: .timedOut)
        try testbed.testbed.setCable(connected: false)
        try testbed.testbed.near.wait(until: "-br link show near0", prints: " DOWN ")
        try await timesOut(testbed, as: .notConnectedToInternet)
    }

    private func timesOut(_ testbed: OfflineTestbed, as code: URLError.Code) async throws {
        let response = await testbed.session.transfer(
            try URLRequest(url: "http://198.51.100.99/", method: .get),
            policy: .singleTransfer(
                maximumResponseBytes: 1,
                totalTimeout: .seconds(1),
                allowsConnectionReuse: false
            )
        ).response()
        #expect(response.error?.transferFailure?.code == 28)
        #expect(response.error?.transferFailure?.phase == .connect)
        #expect((response.error as? URLError)?.code == code)
    }

    @Test func `a loss that the monitor has not published yet counts`() async throws {
        let testbed = try OfflineTestbed(isConnected: true, settle: .milliseconds(250))
        #expect(await code(testbed.session, "http://host.test/") == .cannotFindHost)
        try testbed.disconnect()
        #expect(await code(testbed.session, "http://host.test/") == .notConnectedToInternet)
    }

    @Test(arguments: [true, false])
    func `a request that waits for its response counts as offline if the path is lost`(reused: Bool)
        async throws
    {
        let testbed = try OfflineTestbed(isConnected: true)
        let server = try testbed.server {
            $0.target.hasSuffix("late") ? .stall(then: .respond("late")) : .respond("")
        }
        defer { server.release() }
        if reused { #expect(await code(testbed.session, server.url) == nil) }
        let request = testbed.session.request("\(server.url)/late")
        async let response = request.response()
        await server.requests(atLeast: reused ? 2 : 1)
        try await testbed.watchesPath()
        try testbed.disconnect()
        let error = await response.error
        #expect((error as? URLError)?.code == .notConnectedToInternet)
        #expect(error?.transferFailure?.code == 56)
        #expect(error?.transferFailure?.reusedConnection == reused)
        #expect(error?.localizedDescription.hasSuffix("the path to \(OfflineTestbed.host) was lost") == true)
    }

    @Test func `a request over an open connection counts as offline if the path was lost just before`()
        async throws
    {
        // The monitor publishes the loss late, so the session still uses its old connection.
        let testbed = try OfflineTestbed(isConnected: true, settle: .milliseconds(250))
        let server = try testbed.server()
        #expect(await code(testbed.session, server.url) == nil)
        try await testbed.watchesPath()
        try testbed.disconnect()
        let error = await testbed.session.request(server.url).response().error
        #expect((error as? URLError)?.code == .notConnectedToInternet)
        let failure = try #require(error?.transferFailure)
        #expect(failure.reusedConnection)
        // CURLE_SEND_ERROR or CURLE_RECV_ERROR
        #expect([55, 56].contains(failure.code))
    }

    @Test func `a refused connection does not count as offline`() async throws {
        let testbed = try OfflineTestbed()
        #expect(await code(testbed.session, "http://127.0.0.1:1/") == .cannotConnectToHost)
        #expect(await code(testbed.session, "http://\(VethTestbed.farAddress):1/") == .cannotConnectToHost)
        #expect(await code(testbed.session, "http://localhost:1/") == .cannotConnectToHost)
    }

    /// Returns a testbed in which every name resolves to the given address.
    private func testbed(resolvingTo address: String) throws -> OfflineTestbed {
        let address = try #require(IPAddress(address))
        return try OfflineTestbed(resolver: NameResolver { _ in .success([address]) })
    }

    @Test func `a resolved name is checked by its address, not by the default route`() async throws {
        let beyond = try testbed(resolvingTo: OfflineTestbed.host)
        try beyond.connect()
        try beyond.testbed.near.ip("route add blackhole \(OfflineTestbed.host)")
        #expect(await code(beyond.session, "http://host.test/") == .notConnectedToInternet)
        let near = try testbed(resolvingTo: VethTestbed.farAddress)
        #expect(await code(near.session, "http://host.test:1/") == .cannotConnectToHost)
    }

    @Test func `a unix socket needs no network`() async throws {
        let testbed = try OfflineTestbed()
        let session = SessionManager(
            engine: testbed.engine,
            settings: SessionSettings(unixSocketPath: "/nonexistent/socket"),
            monitor: testbed.monitor
        )
        #expect(await code(session, "http://service/") == .cannotConnectToHost)
    }

    @Test func `without netlink the error depends on libcurl's error number`() async throws {
        let testbed = try OfflineTestbed()
        var configuration = PathMonitor.Configuration()
        configuration.networkNamespace = "/nonexistent"
        let blind = PathMonitor(configuration: configuration)
        let session = SessionManager(engine: testbed.engine, monitor: blind)
        #expect(await code(session, "http://host.test/") == .cannotFindHost)
        #expect(await code(session, "http://\(OfflineTestbed.host)/") == .notConnectedToInternet)
    }

    @Test func `a session with only local or successful requests creates no monitor`()
        async throws
    {
        let testbed = try OfflineTestbed()
        let made = Lock(0)
        let session = SessionManager(
            engine: testbed.engine,
            monitor: {
                made.withLock { $0 += 1 }
                return testbed.monitor
            }()
        )
        let server = try ScriptedServer(address: "127.0.0.1", in: testbed.testbed.near)
        #expect(await session.request(server.url).response().error == nil)
        #expect(await code(session, "http://127.0.0.1:1/") == .cannotConnectToHost)
        #expect(made.withLock { $0 } == 0)
        for _ in 0..<2 { #expect(await code(session, "http://host.test/") == .notConnectedToInternet) }
        #expect(made.withLock { $0 } == 1)
    }

    @Test func `requests cancelled during the path lookup end once each`() async throws {
        let testbed = try OfflineTestbed()
        let ended = Recorder<Int>()
        for index in 0..<200 {
            let request = testbed.session.request("http://host.test/").response(queue: .global()) { _ in
                ended.record(index)
            }
            if index.isMultiple(of: 2) { DispatchQueue.global().async { request.cancel() } }
            if index.isMultiple(of: 3) { DispatchQueue.global().async { request.suspend().resume() } }
        }
        try await ended.wait { $0.count >= 200 }
        #expect(ended.values.sorted() == Array(0..<200))
    }

    @Test(arguments: ["http://192.0.2.1/", "http://[2001:db8::1]/"])
    func `an address without a route fails with notConnectedToInternet`(url: String) async throws {
        let nowhere = try NetworkNamespace()
        let engine = try TransferEngine(networkNamespace: nowhere.path)
        let session = SessionManager(engine: engine, monitor: PathMonitor(of: nowhere))
        let error = await session.request(url).response().error
        #expect((error as? URLError)?.code == .notConnectedToInternet)
        #expect(error?.transferFailure?.osErrno == ENETUNREACH)
        #expect(error?.transferFailure?.bytesSent == 0)
    }

    /// If no name server can be reached, the resolver cannot report that a name does not exist. The kernel's routes
    /// decide whether the client is offline.
    @Test
    func `a name without a reachable resolver fails with notConnectedToInternet and the resolver's reason`()
        async throws
    {
        let nowhere = try NetworkNamespace()
        let engine = try TransferEngine(
            resolver: NameResolver(networkNamespace: nowhere.path),
            networkNamespace: nowhere.path
        )
        let session = SessionManager(engine: engine, monitor: PathMonitor(of: nowhere))
        let error = await session.request("http://netwatch.example/").response().error
        #expect((error as? URLError)?.code == .notConnectedToInternet)
        #expect(error?.transferFailure?.resolverCode == EAI_AGAIN)
        #expect(error?.transferFailure?.phase == .resolve)
    }
}
