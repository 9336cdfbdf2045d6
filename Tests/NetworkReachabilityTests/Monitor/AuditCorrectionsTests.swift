internal import NetwatchEventLoop
internal import NetwatchNetlink
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetworkReachability

@Suite struct AuditCorrectionsTests {
    private let start = BootInstant.now

    @Test func `a correction counts if no notification about the address follows within 2 s`() {
        var corrections = AuditCorrections()
        corrections.note(1, now: start)
        corrections.note(2, now: start)
        #expect(corrections.count(at: start + .milliseconds(1999)) == 0)
        corrections.retract(now: start + .milliseconds(1999)) { $0 == 1 }
        #expect(corrections.count(at: start + .seconds(2)) == 1)
        corrections.retract(now: start + .seconds(3)) { _ in true }
        #expect(corrections.count(at: start + .seconds(4)) == 1)
    }

    @Test func `a late notification does not retract a correction`() {
        var corrections = AuditCorrections()
        corrections.note(1, now: start)
        corrections.retract(now: start + .seconds(2)) { _ in true }
        #expect(corrections.count(at: start + .seconds(2)) == 1)
    }
}

/// Monitors with real networks, whose audits are called by the test.
@Suite(.needsNetworkNamespaces)
struct AuditTests {
    private func monitor(
        in testbed: VethTestbed,
        _ change: (inout PathMonitor.Configuration) -> Void = { _ in }
    ) -> PathMonitor {
        var configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.disablePeriodicLookups()
        change(&configuration)
        return PathMonitor(configuration: configuration)
    }

    @Test func `a missed notification is counted as a correction of the audit`() async throws {
        let testbed = try VethTestbed()
        let monitor = monitor(in: testbed) { $0.faults.ignoredClasses = [.route] }
        let (statuses, watch) = monitor.record(VethTestbed.remoteAddress)
        #expect(monitor.audit() == 0)
        try testbed.near.ip("route add blackhole \(VethTestbed.remoteAddress)")
        #expect(monitor.audit() == 1)
        #expect(monitor.audit() == 1)
        try await statuses.waitForLast { $0.reason == .blackhole }
        watch.cancel()
    }

    @Test func `a change with a notification is not counted as a correction of the audit`() throws {
        let testbed = try VethTestbed()
        let monitor = monitor(in: testbed)
        let watch = monitor.watch(.host(NetworkHost(VethTestbed.remoteAddress)!)) { _ in }
        try testbed.near.ip("route add blackhole \(VethTestbed.remoteAddress)")
        #expect(monitor.audit() == 0)
        withExtendedLifetime(watch) {}
    }
}
