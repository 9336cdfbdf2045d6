internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

/// The snapshots that a monitor publishes.
@Suite(.needsNetworkNamespaces)
struct NetworkSnapshotTests {
    private let testbed: VethTestbed
    private var configuration: PathMonitor.Configuration

    init() throws {
        testbed = try VethTestbed()
        configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.disablePeriodicLookups()
    }

    @Test func `snapshots contain the interfaces and address families and follow their changes`() async throws
    {
        let monitor = PathMonitor(configuration: configuration)
        let snapshots = Recorder<NetworkSnapshot>()
        let reading = Task { for await snapshot in monitor.snapshots { snapshots.record(snapshot) } }
        defer { reading.cancel() }
        try await snapshots.waitForLast { $0.supportsIPv4 && $0.supportsIPv6 }
        let near = try #require(snapshots.values.last?.interfaces.first { $0.name == "near0" })
        #expect(near.addresses.map(\.description).sorted() == ["192.0.2.1", "2001:db8::1"])
        #expect(near.hasCarrier && near.isUp && near.type == .veth && near.mtu == 1500)
        try testbed.near.ip("link set near0 mtu 1400")
        try await snapshots.waitForLast { $0.interfaces.contains { $0.mtu == 1400 } }
        try testbed.near.ip("-6 route del default")
        try await snapshots.waitForLast { $0.supportsIPv4 && !$0.supportsIPv6 }
        let generations = snapshots.values.map(\.generation)
        #expect(generations == generations.sorted() && Set(generations).count == generations.count)
    }

    @Test func `the snapshot of a monitor that cannot start is empty`() async {
        var configuration = PathMonitor.Configuration()
        configuration.networkNamespace = "/no/such/namespace"
        let monitor = PathMonitor(configuration: configuration)
        #expect(monitor.snapshot.interfaces.isEmpty)
        #expect(monitor.snapshot.general.verdict == .unknown(.noNetlink))
        for await snapshot in monitor.snapshots {
            #expect(snapshot == monitor.snapshot)
            break
        }
    }
}
