internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

/// The addresses that a monitor looks up after real kernel notifications.
@Suite(.needsNetworkNamespaces)
struct AffectedHostTests {
    private let testbed: VethTestbed
    private let monitor: PathMonitor

    init() throws {
        testbed = try VethTestbed()
        var configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.disablePeriodicLookups()
        configuration.settle = .zero
        monitor = PathMonitor(configuration: configuration)
    }

    @Test func `a route event looks up only the hosts that it covers`() async throws {
        let watches = (0..<1000).map { number in
            monitor.watch(.host(NetworkHost("10.0.\(number / 100).\(number % 100)")!)) { _ in }
        }
        monitor.narrowFilter()
        let before = monitor.statistics
        try testbed.near.ip("route add blackhole 10.0.7.16/29")
        monitor.catchUp()
        #expect(monitor.statistics.lookups - before.lookups == 8)
        #expect(monitor.statistics.statusChanges - before.statusChanges == 8)
        #expect(watches.count { $0.status.reason == .blackhole } == 8)
        try testbed.near.ip("route add blackhole 172.16.0.0/12")
        monitor.catchUp()
        #expect(monitor.statistics.lookups - before.lookups == 8)
        #expect(monitor.statistics.statusChanges - before.statusChanges == 8)
    }

    /// The clock stands still while more hosts than one turn of the loop looks up wait for the end of the settle time.
    @Test func `the loss of many paths is reported without further delay after the settle time`() async throws
    {
        let clock = TestClock()
        var configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.disablePeriodicLookups()
        configuration.clock = clock.monitorClock
        // The general target has no addresses of its own, so that only those of the hosts are looked up.
        configuration.generalAddresses = [IPAddress("10.0.0.0")!]
        let monitor = PathMonitor(configuration: configuration)
        let statuses = Recorder<PathStatus>()
        let watches = (0..<1000).map { number in
            let host = NetworkHost("10.0.\(number / 100).\(number % 100)")!
            return monitor.watch(.host(host)) { statuses.record($0) }
        }
        try await statuses.wait { $0.count == watches.count }
        let before = monitor.statistics.lookups
        try testbed.near.ip("route del default")
        monitor.catchUp()
        while monitor.statistics.lookups < before + watches.count { await Task.yield() }
        #expect(statuses.values.allSatisfy { $0.isReachable })
        clock.advance(by: configuration.settle)
        try await statuses.wait { $0.count == 2 * watches.count }
        #expect(watches.allSatisfy { $0.status.reason == .noRoute })
    }

    @Test func `a host added after the filter was narrowed receives events`() async throws {
        let first = monitor.watch(.host(NetworkHost("10.0.0.1")!)) { _ in }
        monitor.narrowFilter()
        let second = monitor.watch(.host(NetworkHost("10.99.0.1")!)) { _ in }
        try testbed.near.ip("route add blackhole 10.99.0.0/16")
        monitor.catchUp()
        #expect(first.status.isReachable)
        #expect(second.status.reason == .blackhole)
        monitor.narrowFilter()
        try testbed.near.ip("route del blackhole 10.99.0.0/16")
        monitor.catchUp()
        #expect(second.status.isReachable)
    }
}
