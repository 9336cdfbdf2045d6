internal import NetwatchNetlink
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

/// The lookups for the first notifications, which come before the socket is drained.
@Suite(.needsNetworkNamespaces)
struct EarlyLookupTests {
    @Test func `the status of a change is delivered before the socket is drained`() throws {
        let testbed = try VethTestbed()
        let clock = TestClock()
        let log = Recorder<String>()
        var configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.settle = .zero
        configuration.clock = clock.monitorClock
        configuration.faults.ignoredClasses = Set(NetlinkEvent.Class.allCases).subtracting([.route])
        configuration.faults.interceptor = { batch in
            log.record(batch.events.isEmpty ? "nothing" : "notifications")
            return batch
        }
        let monitor = PathMonitor(configuration: configuration)
        let host = try #require(NetworkHost(VethTestbed.remoteAddress))
        let watch = monitor.watch(.host(host)) { _ in log.record("status") }
        #expect(watch.status.isReachable)
        monitor.narrowFilter()
        monitor.catchUp()
        clock.advance(by: .seconds(1))
        let count = log.values.count
        try testbed.near.ip("route add blackhole \(VethTestbed.remoteAddress)")
        monitor.catchUp()
        #expect(Array(log.values.dropFirst(count).prefix(3)) == ["notifications", "status", "nothing"])
        #expect(!watch.status.isReachable)
    }
}
