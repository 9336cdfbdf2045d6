internal import Logging
internal import NetwatchService
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

@Suite(.timeLimit(.minutes(5))) struct HostMonitorTests {
    /// A host that needs no server: the kernel has a route to it.
    private static func local(_ name: String, _ address: String) throws -> WatchedHost {
        WatchedHost(name: name, check: .route(try NetworkHost(validating: address)))
    }

    private func isState(_ state: HostState, of name: String, _ monitor: HostMonitor) async -> Bool {
        await monitor.snapshots.contains { $0.host.name == name && $0.state == state }
    }

    @Test func `a changed host is watched with its new settings, and the others keep their state`()
        async throws
    {
        let monitor = HostMonitor(monitor: .shared, history: nil, logger: Logger(label: "test"))
        let kept = try Self.local("kept", "127.0.0.1")
        let hosts = [kept, try Self.local("changed", "127.0.0.2")]
        let running = Task { await monitor.run(hosts) }
        try await poll { await isState(.up, of: "kept", monitor) }
        try await poll { await isState(.up, of: "changed", monitor) }
        let before = try #require(await monitor.snapshots.first)
        let moved = try Self.local("changed", "127.0.0.3")
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
