internal import NetwatchNetlink
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

/// Monitors after a suspension of the machine, which the tests simulate.
@Suite(.needsNetworkNamespaces)
struct SuspensionTests {
    private let testbed: VethTestbed
    private var configuration: PathMonitor.Configuration

    init() throws {
        testbed = try VethTestbed()
        configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.disablePeriodicLookups()
    }

    @Test func `after a suspension the path generation increases even if the path is unchanged`() async throws
    {
        let monitor = PathMonitor(configuration: configuration)
        let (statuses, watch) = monitor.record(VethTestbed.remoteAddress)
        let before = watch.status
        monitor.revalidate()
        try await statuses.waitForLast { $0.pathGeneration == before.pathGeneration + 1 }
        #expect(watch.status.verdict == before.verdict)
        #expect(statuses.values.count == 2)
    }

    @Test func `a change during a suspension is detected on resume`() async throws {
        var configuration = configuration
        // The monitor receives no notifications, as during a suspension.
        configuration.faults.interceptor = { _ in .init() }
        let monitor = PathMonitor(configuration: configuration)
        let watch = monitor.watch(.host(NetworkHost(VethTestbed.remoteAddress)!)) { _ in }
        #expect(watch.status.isReachable)
        try testbed.near.ip("route add blackhole \(VethTestbed.remoteAddress)")
        monitor.catchUp()
        #expect(watch.status.isReachable)
        monitor.revalidate()
        let (statuses, other) = monitor.record(watch.target)
        try await statuses.waitForLast { $0.reason == .blackhole }
        other.cancel()
    }
}
