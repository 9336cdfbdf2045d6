internal import Logging
internal import NetwatchService
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

@Suite(.timeLimit(.minutes(2))) struct HostMonitorTests {
    private let directory = try! ScratchDirectory()

    private static func local(_ name: String, port: UInt16) throws -> WatchedHost {
        let host = try NetworkHost(validating: "127.0.0.1")
        var watched = WatchedHost(name: name, check: .tcp(host, port: port))
        watched.interval = .seconds(1)
        watched.fall = 2
        return watched
    }

    private func isState(_ state: HostState, of name: String, _ monitor: HostMonitor) async -> Bool {
        await monitor.snapshots.contains { $0.host.name == name && $0.state == state }
    }

    @Test func `a host that stops listening is down, and up when it listens again`() async throws {
        var server: SocketServer? = try SocketServer.echo()
        let port = try #require(server?.port)
        let history = try HostHistory(path: directory.file("history.sqlite"))
        let monitor = HostMonitor(monitor: .shared, history: history, logger: Logger(label: "test"))
        let hosts = [try Self.local("server", port: port)]
        let running = Task { await monitor.run(hosts) }
        try await poll { await isState(.up, of: "server", monitor) }
        server = nil
        try await poll { await isState(.down(.remote), of: "server", monitor) }
        let down = try #require(await monitor.snapshots.first)
        #expect(down.reason == "connection refused")
        #expect(down.failures >= 2 && down.changes == 2)
        server = try SocketServer.echo(port: port)
        try await poll { await isState(.up, of: "server", monitor) }
        running.cancel()
        await running.value
        // The rest of the history is written when the monitor stops.
        let outages = try await history.outages(of: "server", since: 0, limit: 10)
        #expect(outages.count == 1)
        #expect(outages.first?.cause == .remote && outages.first?.end != nil)
        let day = try #require(try await history.sums(.day, since: 0)["server"])
        #expect(day.up > 0 && day.remote > 0 && day.local == 0)
        #expect(day.probes > day.failures && day.failures >= 2)
        withExtendedLifetime(server) {}
    }

    @Test func `a changed host is watched with its new settings, and the others keep their state`()
        async throws
    {
        let first = try SocketServer.echo(), second = try SocketServer.echo()
        let monitor = HostMonitor(monitor: .shared, history: nil, logger: Logger(label: "test"))
        let kept = try Self.local("kept", port: first.port)
        let hosts = [kept, try Self.local("changed", port: first.port)]
        let running = Task { await monitor.run(hosts) }
        try await poll { await isState(.up, of: "kept", monitor) }
        try await poll { await isState(.up, of: "changed", monitor) }
        let before = try #require(await monitor.snapshots.first)
        let moved = try Self.local("changed", port: second.port)
        await monitor.update([moved, kept])
        let after = await monitor.snapshots
        #expect(after.map(\.host) == [moved, kept])
        #expect(after[1].since == before.since)
        try await poll { await isState(.up, of: "changed", monitor) }
        running.cancel()
        await running.value
    }

    @Test(.enabled(if: NetworkNamespace.isAvailable))
    func `a host without a route is a local outage, which ends with the route`() async throws {
        let namespace = try NetworkNamespace()
        var configuration = PathMonitor.Configuration()
        configuration.networkNamespace = namespace.path
        let host = WatchedHost(name: "far", check: .route(try NetworkHost(validating: "192.0.2.1")))
        let monitor = HostMonitor(
            monitor: PathMonitor(configuration: configuration),
            history: nil,
            logger: Logger(label: "test")
        )
        let running = Task { await monitor.run([host]) }
        try await poll { await isState(.down(.local), of: "far", monitor) }
        try namespace.ip("route add local 192.0.2.1 dev lo")
        try await poll { await isState(.up, of: "far", monitor) }
        running.cancel()
        await running.value
    }
}
