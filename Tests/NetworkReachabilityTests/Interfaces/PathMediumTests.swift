internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

/// The type and the medium that paths and snapshots contain for their interfaces.
@Suite(.needsNetworkNamespaces)
struct PathMediumTests {
    private let testbed: VethTestbed
    private var configuration: PathMonitor.Configuration

    init() throws {
        testbed = try VethTestbed()
        configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.disablePeriodicLookups()
    }

    @Test func `a path contains the type and the medium of its interface`() async throws {
        try testbed.near.ip(
            "link add tunnel0 type vxlan id 7 dev near0 remote \(VethTestbed.farAddress) dstport 4789",
            "addr add 203.0.113.1/24 dev tunnel0",
            "link set tunnel0 up"
        )
        let monitor = PathMonitor(configuration: configuration)
        let (inside, watch) = monitor.record("203.0.113.9")
        try await inside.waitForLast { $0.path?.interfaceType == .tunnel }
        #expect(watch.status.path?.medium == .veth)
        #expect(watch.status.path?.isTunnel == true)
        let plain = monitor.watch(.host(NetworkHost(VethTestbed.remoteAddress)!)) { _ in }
        #expect(plain.status.path?.interfaceType == .veth)
        #expect(plain.status.path?.isTunnel == false)
    }

    @Test func `a tunnel without a lower link has the medium of the default route`() async throws {
        try testbed.near.ip("tuntap add tunnel0 mode tun", "addr add 203.0.113.1/24 dev tunnel0")
        let monitor = PathMonitor(configuration: configuration)
        let tunnel = try #require(monitor.snapshot.interfaces.first { $0.name == "tunnel0" })
        #expect(tunnel.type == .tunnel)
        #expect(tunnel.medium == .veth)
        try testbed.near.ip("route del default", "-6 route del default")
        monitor.revalidate()
        let other = try #require(monitor.snapshot.interfaces.first { $0.name == "tunnel0" })
        #expect(other.medium == .tunnel)
    }
}
