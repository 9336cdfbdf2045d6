internal import NetwatchEventLoop
internal import NetwatchNetlink
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

/// Interfaces and addresses that a monitor reads one by one after their notifications.
@Suite(.needsNetworkNamespaces)
struct IncrementalReadingTests {
    private static let newIPv6Address = "2001:db8::77"
    // None of them changes a carrier, because the kernel announces such a change later.
    private static let changes = [
        "link set near0 mtu 1400",
        "addr add 192.0.2.77/24 dev near0",
        "addr add 203.0.113.1/32 dev lo",
        "-6 addr add \(newIPv6Address)/64 dev near0 nodad",
        "addr del 192.0.2.1/24 dev near0",
        "-6 addr del 2001:db8::1/64 dev near0",
        "link add here0 type veth peer name here1",
        "link add br0 type bridge",
        "link set here1 master br0",
        "addr add 198.51.100.1/24 dev here0",
        "link set here0 name renamed0",
        "link set here1 nomaster",
        "link del renamed0",
        "addr flush dev near0",
    ]

    @Test func `reading single interfaces has the same result as reading everything`() async throws {
        let testbed = try VethTestbed()
        var configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.disablePeriodicLookups()
        let monitor = PathMonitor(configuration: configuration)
        monitor.catchUp()
        for change in Self.changes {
            try testbed.near.ip(change)
            monitor.catchUp()
            // A work queue of the kernel announces a new IPv6 address, possibly after `ip` has ended.
            if change.contains(Self.newIPv6Address) {
                try await poll {
                    monitor.catchUp()
                    let addresses = monitor.snapshot.interfaces.flatMap(\.addresses)
                    return addresses.contains { $0.description == Self.newIPv6Address }
                }
            }
            let complete = PathMonitor(configuration: configuration)
            complete.catchUp()
            #expect(monitor.snapshot.interfaces == complete.snapshot.interfaces, "after `ip \(change)`")
        }
    }

    @Test func `a notification about an interface does not make the monitor read others`() throws {
        let testbed = try VethTestbed()
        var configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.disablePeriodicLookups()
        // Only reading `lo` shows its new address.
        configuration.faults.ignoredClasses = [.address]
        let monitor = PathMonitor(configuration: configuration)
        monitor.catchUp()
        try testbed.near.ip("addr add 203.0.113.1/32 dev lo", "link set near0 mtu 1400")
        monitor.catchUp()
        let interfaces = monitor.snapshot.interfaces
        #expect(interfaces.first { $0.name == "near0" }?.mtu == 1400)
        let loopback = try #require(interfaces.first { $0.name == "lo" })
        #expect(!loopback.addresses.contains { $0.description == "203.0.113.1" })
    }
}
