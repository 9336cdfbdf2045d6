internal import Foundation
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// Replacing connections when their network path changes.
@Suite(
    .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"),
    .timeLimit(.minutes(5))
)
struct ConnectionWatchesTests {
    private let testbed: TwoCableTestbed
    private let monitor: PathMonitor
    private let session: SessionManager

    init() throws {
        testbed = try TwoCableTestbed()
        let monitor = PathMonitor(of: testbed.near)
        self.monitor = monitor
        session = SessionManager(
            engine: try TransferEngine(networkNamespace: testbed.near.path),
            monitor: monitor
        )
    }

    private func server() throws -> ScriptedServer {
        try ScriptedServer(address: TwoCableTestbed.host, in: testbed.far)
    }

    /// Starts the session's monitor, so that connections are watched as soon as they are recorded.
    private func startMonitor() async {
        _ = await session.context.paths.monitor()
    }

    /// Returns the generation of the path to a server, after the monitor has processed all earlier events.
    private func generation(to server: ScriptedServer) -> UInt64? {
        monitor.catchUp()
        return session.context.connections.generations[Self.peer(TwoCableTestbed.host, server.port)]
    }

    /// Watches the path to the host for a port. The watch must be newer than that of the connection to the same port,
    /// so that it is notified later.
    private func watch(_ port: UInt16, _ receive: @escaping @Sendable (PathStatus) -> Void) throws
        -> PathWatch
    {
        var options = PathOptions()
        options.port = port
        let host = try #require(NetworkHost(TwoCableTestbed.host))
        return monitor.watch(.host(host), options: options, onUpdate: receive)
    }

    private static func peer(_ address: String, _ port: UInt16 = 443) -> ConnectionPeer {
        ConnectionPeer(address: IPAddress(address)!, port: port)
    }

    /// Makes the kernel resolve the neighbour at the end of the first cable. Otherwise the kernel may send its ARP
    /// request later, for the FIN of the old connection, and with the source address of that connection. `far` sends no
    /// ARP reply to that address over this cable.
    private func meetNeighbour() async throws {
        let refusal = await session.request("http://\(VethTestbed.farAddress):1/").response().error
        #expect((refusal as? URLError)?.code == .cannotConnectToHost)
    }

    @Test func `a request after roaming uses a new connection although the old one appears alive`()
        async throws
    {
        let server = try server()
        await startMonitor()
        for _ in 0..<2 { #expect(await session.request(server.url).response().error == nil) }
        #expect(generation(to: server) != nil)
        try await meetNeighbour()
        try testbed.preferFirstCable()
        monitor.catchUp()
        #expect(await session.request(server.url).response().error == nil)
        #expect(server.peers == [testbed.second.source, testbed.first.source])
        #expect(server.requests.map(\.connection) == [1, 1, 2])
    }

    @Test func `a request after an outage uses a new connection`() async throws {
        let server = try server()
        await startMonitor()
        #expect(await session.request(server.url).response().error == nil)
        let first = try #require(generation(to: server))
        let generations = Recorder<UInt64>()
        let watch = try watch(server.port) { generations.record($0.pathGeneration) }
        defer { watch.cancel() }
        try testbed.near.ip("route add unreachable \(TwoCableTestbed.host) metric 0 table local")
        monitor.catchUp()
        try testbed.near.ip("route del unreachable \(TwoCableTestbed.host) table local")
        monitor.catchUp()
        try await generations.waitForLast { $0 != first }
        #expect(generation(to: server) != first)
        #expect(await session.request(server.url).response().error == nil)
        #expect(server.requests.map(\.connection) == [1, 2])
    }

    @Test func `requests end if a path is lost for the grace time, but not if it returns before`()
        async throws
    {
        let graces = Recorder<@Sendable () -> Void>()
        let ended = Recorder<ConnectionPeer>()
        let connections = try await watches(graces, ended)
        let peer = Self.peer(TwoCableTestbed.host)
        _ = connections.record(peer)
        let statuses = Recorder<PathStatus>()
        let watch = try watch(peer.port) { statuses.record($0) }
        defer { watch.cancel() }
        let blocking = "unreachable \(TwoCableTestbed.host) metric 0 table local"
        try await statuses.waitForLast(\.isReachable)
        try testbed.near.ip("route add \(blocking)")
        try await statuses.waitForLast { !$0.isReachable }
        #expect(graces.values.count == 1)
        try testbed.near.ip("route del \(blocking)")
        try await statuses.waitForLast(\.isReachable)
        graces.values[0]()
        #expect(ended.values.isEmpty)
        try testbed.near.ip("route add \(blocking)")
        try await statuses.waitForLast { !$0.isReachable }
        // The grace time of the first loss says nothing about the second one.
        graces.values[0]()
        #expect(ended.values.isEmpty)
        graces.values[1]()
        monitor.catchUp()
        #expect(ended.values == [peer])
    }

    @Test func `requests continue if the path has returned when the grace time ends, but its status has not`()
        async throws
    {
        let graces = Recorder<@Sendable () -> Void>()
        let ended = Recorder<ConnectionPeer>()
        let connections = try await watches(graces, ended)
        let peer = Self.peer(TwoCableTestbed.host)
        _ = connections.record(peer)
        // Stops the monitor's thread after the loss, as if the process was stopped.
        let statuses = Recorder<PathStatus>()
        let gate = Gate()
        let watch = try watch(peer.port) { status in
            statuses.record(status)
            if !status.isReachable { gate.wait() }
        }
        defer { watch.cancel() }
        let blocking = "unreachable \(TwoCableTestbed.host) metric 0 table local"
        try await statuses.waitForLast(\.isReachable)
        try testbed.near.ip("route add \(blocking)")
        try await statuses.waitForLast { !$0.isReachable }
        try testbed.near.ip("route del \(blocking)")
        graces.values[0]()
        gate.open()
        monitor.catchUp()
        #expect(ended.values.isEmpty)
    }

    @Test func `a path that exists only for the port of the connection is not lost`() async throws {
        let graces = Recorder<@Sendable () -> Void>()
        let ended = Recorder<ConnectionPeer>()
        let connections = try await watches(graces, ended)
        try testbed.near.ip(
            "route add unreachable 203.0.113.99",
            "route add 203.0.113.99 via \(VethTestbed.farAddress) table 77",
            "rule add ipproto tcp dport 443 lookup 77"
        )
        monitor.catchUp()
        let (routed, other) = (Self.peer("203.0.113.99"), Self.peer("203.0.113.99", 80))
        for peer in [routed, other] { _ = connections.record(peer) }
        monitor.catchUp()
        #expect(Set(connections.generations.keys) == [routed, other])
        // The monitor finds no path to the other port, but there was none before either.
        #expect(graces.values.isEmpty)
        try testbed.near.ip("rule del ipproto tcp dport 443 lookup 77")
        try await graces.wait { $0.count == 1 }
        graces.values[0]()
        monitor.catchUp()
        #expect(ended.values == [routed])
    }

    /// Returns watches whose grace times end only when the test ends them.
    private func watches(
        _ graces: Recorder<@Sendable () -> Void>,
        _ ended: Recorder<ConnectionPeer>
    ) async throws -> ConnectionWatches {
        let paths = SessionPaths { [monitor] in monitor }
        // Connections are then watched as soon as they are recorded.
        _ = await paths.monitor()
        return ConnectionWatches(
            paths,
            timer: { _, body in graces.record(body) },
            renew: {},
            endUnanswered: { ended.record($0) }
        )
    }

    @Test func `a change of an unrelated path does not affect connections`() async throws {
        let server = try server()
        await startMonitor()
        #expect(await session.request(server.url).response().error == nil)
        #expect(generation(to: server) != nil)
        try testbed.near.ip("route add 198.18.0.0/15 via \(VethTestbed.farAddress)")
        monitor.catchUp()
        #expect(await session.request(server.url).response().error == nil)
        #expect(server.requests.map(\.connection) == [1, 1])
    }

    @Test func `loopback is not watched, and the number of watched peers is limited`() async throws {
        let connections = session.context.connections
        for address in ["127.0.0.1", "::1"] {
            let isFirst = connections.record(Self.peer(address))
            #expect(!isFirst)
        }
        #expect(connections.peers.isEmpty)
        #expect(!session.context.paths.isStarted)
        await startMonitor()
        let many = (1...70).map { Self.peer("198.18.0.\($0)") }
        for peer in many { _ = connections.record(peer) }
        _ = connections.record(many[10])
        #expect(connections.peers == many.suffix(64).filter { $0 != many[10] } + [many[10]])
        monitor.catchUp()
        #expect(connections.generations.count == 64)
    }

    @Test func `watches end if no request was created in the meantime`() async throws {
        let server = try server()
        #expect(await session.request(server.url).response().error == nil)
        let last = session.context.lastIdentifier
        #expect(await session.request(server.url).response().error == nil)
        session.context.endUnusedWatches(since: last)
        #expect(session.context.connections.peers == [Self.peer(TwoCableTestbed.host, server.port)])
        session.context.endUnusedWatches(since: last + 1)
        #expect(session.context.connections.peers.isEmpty)
    }
}
