internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

/// Monitors during bursts of tens of thousands of route changes.
// Serialized, because each test uses all cores of the machine.
@Suite(.serialized, .needsNetworkNamespaces)
struct StormTests {
    /// The values of `isFiltered`: whether the monitor uses the kernel filter, which drops notifications of routes that
    /// cover no watched host.
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
        // At most one recomputation runs per 10 ms. Without the filter the limit allows a slow machine 40 s. One
        // recomputation per notification would exceed it.
        #expect(host.monitor.statistics.recomputations < (isFiltered ? 40 : 4000))
    }

    @Test(arguments: filterSettings)
    func `a change during a receive buffer overrun is detected after it`(isFiltered: Bool)
        async throws
    {
        let testbed = try VethTestbed()
        let host = try WatchedHost(VethTestbed.remoteAddress, in: testbed, isFiltered: isFiltered)
        try await host.becomes(reachable: true)
        // The monitor's thread is blocked while the kernel sends more notifications than the receive buffer holds. The
        // only relevant change happens while the kernel drops notifications.
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
        // With the filter the storm's notifications do not reach the buffer, so it does not overrun.
        #expect((host.monitor.statistics.overruns > 0) == !isFiltered)
    }

    @Test func `a storm of unrelated routes does not wake the monitor`() async throws {
        let testbed = try VethTestbed()
        let host = try WatchedHost(VethTestbed.remoteAddress, in: testbed)
        try await host.becomes(reachable: true)
        let before = host.monitor.statistics
        for action in ["add", "del"] { try storm(action, 100_000, in: testbed) }
        host.monitor.catchUp()
        // The limit allows three recomputations for pending notifications of the testbed's setup. Without the filter
        // there would be hundreds.
        #expect(host.monitor.statistics.recomputations <= before.recomputations + 3)
        #expect(host.monitor.statistics.overruns == 0)
        #expect(host.watch.status.isReachable)
    }
}
