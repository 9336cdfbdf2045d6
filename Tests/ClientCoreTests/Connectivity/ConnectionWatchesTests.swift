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

    /// Returns the generation of the path to an address, after the monitor has processed all earlier events.
    private func generation(to address: String) -> UInt64? {
        monitor.catchUp()
        return IPAddress(address).flatMap { session.context.connections.generations[$0] }
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
        #expect(generation(to: TwoCableTestbed.host) != nil)
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
        let first = try #require(generation(to: TwoCableTestbed.host))
        // This watch is newer than the session's watch, so it is notified after the session.
        let generations = Recorder<UInt64>()
        let host = try #require(NetworkHost(TwoCableTestbed.host))
        let watch = monitor.watch(.host(host)) { generations.record($0.pathGeneration) }
        defer { watch.cancel() }
        try testbed.near.ip("route add unreachable \(TwoCableTestbed.host) metric 0 table local")
        monitor.catchUp()
        try testbed.near.ip("route del unreachable \(TwoCableTestbed.host) table local")
        monitor.catchUp()
        try await generations.waitForLast { $0 != first }
        #expect(generation(to: TwoCableTestbed.host) != first)
        #expect(await session.request(server.url).response().error == nil)
        #expect(server.requests.map(\.connection) == [1, 2])
    }

    @Test func `requests end if a path is lost for the grace time, but not if it returns before`()
        async throws
    {
        let graces = Recorder<@Sendable () -> Void>()
        let ended = Recorder<IPAddress>()
        let paths = SessionPaths { [monitor] in monitor }
        _ = await paths.monitor()
        let connections = ConnectionWatches(
            paths,
            timer: { _, body in graces.record(body) },
            renew: {},
            endUnanswered: { ended.record($0) }
        )
        let address = try #require(IPAddress(TwoCableTestbed.host))
        _ = connections.record(address)
        // This watch is newer than the watch of the connection, so it is notified later.
        let statuses = Recorder<PathStatus>()
        let host = try #require(NetworkHost(TwoCableTestbed.host))
        let watch = monitor.watch(.host(host)) { statuses.record($0) }
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
        #expect(ended.values == [address])
    }

    @Test func `a change of an unrelated path does not affect connections`() async throws {
        let server = try server()
        await startMonitor()
        #expect(await session.request(server.url).response().error == nil)
        #expect(generation(to: TwoCableTestbed.host) != nil)
        try testbed.near.ip("route add 198.18.0.0/15 via \(VethTestbed.farAddress)")
        monitor.catchUp()
        #expect(await session.request(server.url).response().error == nil)
        #expect(server.requests.map(\.connection) == [1, 1])
    }

    @Test func `loopback is not watched, and the number of watched addresses is limited`() async throws {
        let connections = session.context.connections
        for address in ["127.0.0.1", "::1"] {
            let isFirst = connections.record(try #require(IPAddress(address)))
            #expect(!isFirst)
        }
        #expect(connections.addresses.isEmpty)
        #expect(!session.context.paths.isStarted)
        await startMonitor()
        let many = (1...70).compactMap { IPAddress("198.18.0.\($0)") }
        for address in many { _ = connections.record(address) }
        _ = connections.record(many[10])
        #expect(connections.addresses == many.suffix(64).filter { $0 != many[10] } + [many[10]])
        monitor.catchUp()
        #expect(connections.generations.count == 64)
    }

    @Test func `watches end if no request was created in the meantime`() async throws {
        let server = try server()
        #expect(await session.request(server.url).response().error == nil)
        let last = session.context.lastIdentifier
        #expect(await session.request(server.url).response().error == nil)
        session.context.endUnusedWatches(since: last)
        #expect(session.context.connections.addresses.map(\.description) == [TwoCableTestbed.host])
        session.context.endUnusedWatches(since: last + 1)
        #expect(session.context.connections.addresses == [])
    }
}
