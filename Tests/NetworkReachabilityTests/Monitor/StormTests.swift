internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

/// Bursts of tens of thousands of route changes.
// Serialized, because each test uses the whole machine.
@Suite(.serialized, .needsNetworkNamespaces)
struct StormTests {
    /// With and without the kernel filter, which drops routes that cover no watched host.
    private static let filterSettings = [true, false]

    /// Adds or deletes `count` routes that cover no watched host.
    private func storm(_ action: String, _ count: Int, in testbed: VethTestbed) throws {
        try testbed.near.shell(
            """
            awk 'BEGIN { for (i = 0; i < \(count); i++)
                printf "route \(action) 10.%d.%d.%d/32 dev near0\\n", i / 65536, i / 256 % 256, i % 256 }' \\
            | ip -batch -
            """
        )
    }

    @Test(arguments: filterSettings) func `a storm causes a limited number of lookups`(
        isFiltered: Bool
    ) async throws {
        let testbed = try VethTestbed()
        let host = try WatchedHost(VethTestbed.remoteAddress, in: testbed, isFiltered: isFiltered)
        try await host.becomes(reachable: true)
        try storm("add", 40_000, in: testbed)
        try testbed.near.ip("route replace blackhole default")
        try await host.becomes(.blackhole)
        // One recomputation per 10 ms, however long the storm takes on this machine. One per event would exceed the
        // limit.
        #expect(host.monitor.statistics.recomputations < (isFiltered ? 40 : 4000))
    }

    @Test(arguments: filterSettings)
    func `a change during a receive buffer overrun is detected after it`(isFiltered: Bool)
        async throws
    {
        let testbed = try VethTestbed()
        let host = try WatchedHost(VethTestbed.remoteAddress, in: testbed, isFiltered: isFiltered)
        try await host.becomes(reachable: true)
        // The monitor's loop is blocked while the kernel announces more than the receive buffer holds. The only
        // relevant change happens while the kernel drops announcements.
        let isBlocked = Recorder<Bool>()
        let gate = Gate()
        host.monitor.block {
            isBlocked.record(true)
            gate.wait()
        }
        try await isBlocked.waitForLast { $0 }
        try storm("add", 40_000, in: testbed)
        try testbed.near.ip("route replace blackhole default")
        gate.open()
        try await host.becomes(.blackhole)
        // The filter drops routes that cover no watched host, so that nothing overruns.
        #expect((host.monitor.statistics.overruns > 0) == !isFiltered)
    }

    @Test func `a storm of unrelated routes does not wake the monitor`() async throws {
        let testbed = try VethTestbed()
        let host = try WatchedHost(VethTestbed.remoteAddress, in: testbed)
        try await host.becomes(reachable: true)
        let before = host.monitor.statistics
        for action in ["add", "del"] { try storm(action, 100_000, in: testbed) }
        host.monitor.catchUp()
        // Allows three for pending announcements of the testbed's setup. Without the filter there are hundreds.
        #expect(host.monitor.statistics.recomputations <= before.recomputations + 3)
        #expect(host.monitor.statistics.overruns == 0)
        #expect(host.watch.status.isReachable)
    }
}
