internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

/// Routes and rules that depend on the source address or the protocol of a connection. The expected statuses are also
/// compared with `connect(2)`.
@Suite(.needsNetworkNamespaces, .withAndWithoutFilter)
struct SourceRoutingTests {
    private let testbed: VethTestbed

    init() throws {
        testbed = try VethTestbed()
    }

    @Test func `an IPv6 default route for the prefix of this machine is used`() async throws {
        try testbed.near.ip("-6 route del default")
        let host = try WatchedHost(VethTestbed.remoteIPv6Address, in: testbed)
        try await host.becomes(.noRoute)
        let route = "default from 2001:db8::/64 via \(VethTestbed.farIPv6Address)"
        try testbed.near.ip("-6 route add \(route)")
        try await host.becomes(reachable: true)
        #expect(host.watch.status.path?.gateway == IPAddress(VethTestbed.farIPv6Address))
        try testbed.near.ip("-6 route del \(route)")
        try await host.becomes(.noRoute)
    }

    @Test func `a shortage of descriptors does not mean that there is no route, and the lookup is repeated`()
        async throws
    {
        try testbed.near.ip("-6 route del default")
        try testbed.near.ip("-6 route add default from 2001:db8::/64 via \(VethTestbed.farIPv6Address)")
        let failure = Lock<SystemError?>(SystemError(call: "socket", errno: EMFILE))
        var configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.disablePeriodicLookups()
        configuration.faults.sourceFailure = { failure.withLock { $0 } }
        let monitor = PathMonitor(configuration: configuration)
        let (statuses, watch) = monitor.record(VethTestbed.remoteIPv6Address)
        try await statuses.waitForLast { $0.verdict == .unknown(.lookupFailed) }
        failure.withLock { $0 = nil }
        try await statuses.waitForLast { $0.isReachable }
        watch.cancel()
    }

    @Test func `an IPv6 route in a table that only a rule with a source prefix selects is used`() async throws
    {
        try testbed.near.ip("-6 route del default")
        try testbed.near.ip("-6 route add default via \(VethTestbed.farIPv6Address) table 70")
        let host = try WatchedHost(VethTestbed.remoteIPv6Address, in: testbed)
        try await host.becomes(.noRoute)
        try testbed.near.ip("-6 rule add from 2001:db8::/64 lookup 70")
        try await host.becomes(reachable: true)
        #expect(host.watch.status.path?.table == 70)
    }

    @Test(arguments: [
        ("prohibit", PathStatus.Reason.prohibited, EACCES), ("unreachable", .unreachable, EHOSTUNREACH),
        ("blackhole", .blackhole, EINVAL),
    ])
    func `without an IPv6 route for all sources, the reason is that of the route for the chosen source`(
        type: String,
        reason: PathStatus.Reason,
        errno: CInt
    ) async throws {
        try testbed.near.ip("-6 route del default")
        let host = try WatchedHost(VethTestbed.remoteIPv6Address, in: testbed)
        try await host.becomes(.noRoute)
        try testbed.near.ip("-6 route add \(type) default table 70")
        try testbed.near.ip("-6 rule add from 2001:db8::/64 pref 100 lookup 70")
        try await host.becomes(reason)
        let oracle = SocketOracle(namespace: testbed.near)
        #expect(oracle.ask(about: host.address) == .refuses(errno: errno))
        // A rule for TCP alone, which connect(2) on a UDP socket does not show.
        try testbed.near.ip("-6 rule add ipproto tcp pref 99 prohibit")
        try await host.becomes(.prohibited)
        try testbed.near.ip("-6 rule del ipproto tcp pref 99 prohibit")
        try await host.becomes(reason)
    }

    @Test func `a rule that routes established IPv6 connections differently increases both generations`()
        async throws
    {
        let host = try WatchedHost(VethTestbed.remoteIPv6Address, in: testbed)
        try await host.becomes(reachable: true)
        let first = host.watch.status
        try testbed.near.ip("-6 route add unreachable default table 70")
        try testbed.near.ip("-6 rule add from 2001:db8::1 lookup 70")
        try await host.recorder.waitForLast { $0.routeGeneration > first.routeGeneration }
        let cut = host.watch.status
        #expect(cut.isReachable && cut.path?.gateway == first.path?.gateway)
        #expect(cut.pathGeneration > first.pathGeneration)
        try testbed.near.ip("-6 route flush table 70")
        try await host.recorder.waitForLast { $0.routeGeneration > cut.routeGeneration }
        let restored = host.watch.status
        // A rule that does not change the route of established connections changes nothing.
        try testbed.near.ip("-6 rule del from 2001:db8::1 lookup 70")
        try testbed.near.ip("-6 rule add from 2001:db8::/64 lookup main")
        #expect(host.monitor.audit() == 0)
        #expect(host.watch.status == restored)
    }

    @Test func `an IPv6 route for a prefix is lost with the address in the prefix`() async throws {
        try testbed.near.ip("-6 route del default")
        try testbed.near.ip("-6 route add default from 2001:db8::/64 via \(VethTestbed.farIPv6Address)")
        let host = try WatchedHost(VethTestbed.remoteIPv6Address, in: testbed)
        try await host.becomes(reachable: true)
        try testbed.near.ip("addr add 2001:db8:5::1/64 dev near0 nodad", "addr del 2001:db8::1/64 dev near0")
        try await host.becomes(.noRoute)
        try testbed.near.ip("addr add 2001:db8::1/64 dev near0 nodad", "addr del 2001:db8:5::1/64 dev near0")
        try await host.becomes(reachable: true)
    }

    /// `connect(2)` uses the route that it finds without a source address.
    @Test func `a rule for the IPv6 source address has no effect while there is a route without it`()
        async throws
    {
        try testbed.near.ip("-6 rule add from 2001:db8::1 prohibit")
        let host = try WatchedHost(VethTestbed.remoteIPv6Address, in: testbed)
        try await host.becomes(reachable: true)
        try testbed.near.ip("-6 route del default")
        try await host.becomes(.prohibited)
    }

    @Test func `a rule for the IPv4 source address that the kernel chooses selects the table`() async throws {
        let host = try WatchedHost(VethTestbed.remoteAddress, in: testbed)
        try await host.becomes(reachable: true)
        try testbed.near.ip("route add unreachable default table 70")
        try testbed.near.ip("rule add from \(VethTestbed.nearAddress) lookup 70")
        try await host.becomes(.unreachable)
        try testbed.near.ip("route replace default via 192.0.2.99 table 70")
        try await host.recorder.waitForLast { $0.path?.gateway == IPAddress("192.0.2.99") }
        #expect(host.watch.status.path?.table == 70)
        #expect(host.watch.status.path?.source == IPAddress(VethTestbed.nearAddress))
        try testbed.near.ip("rule del from \(VethTestbed.nearAddress) lookup 70")
        try await host.recorder.waitForLast { $0.path?.gateway == IPAddress(VethTestbed.farAddress) }
    }

    @Test func `an IPv4 path is lost with the interface of its source, even if it uses another one`()
        async throws
    {
        try testbed.near.ip("link add side0 type veth peer name side1", "addr add 198.18.0.1/24 dev side0")
        // Without a link-local address, whose later notification would cause a lookup.
        try testbed.near.ip("link set side0 addrgenmode none", "link set side1 up", "link set side0 up")
        try testbed.near.ip("route add default via 198.18.0.2 dev side0 table 70")
        try testbed.near.ip("rule add from \(VethTestbed.nearAddress) lookup 70")
        var configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.disablePeriodicLookups()
        let monitor = PathMonitor(configuration: configuration)
        let (statuses, watch) = monitor.record(VethTestbed.remoteAddress)
        try await statuses.waitForLast { $0.path?.interfaceName == "side0" }
        try testbed.near.ip("link set near0 down")
        try await statuses.waitForLast { $0.reason == .noRoute }
        watch.cancel()
    }

    @Test(arguments: [VethTestbed.remoteAddress, VethTestbed.remoteIPv6Address])
    func `a rule for TCP applies, and one for UDP does not`(address: String) async throws {
        let ip = address == VethTestbed.remoteAddress ? "-4" : "-6"
        try testbed.near.ip("\(ip) rule add ipproto udp prohibit")
        let host = try WatchedHost(address, in: testbed)
        try await host.becomes(reachable: true)
        try testbed.near.ip("\(ip) rule add ipproto tcp prohibit")
        try await host.becomes(.prohibited)
        try testbed.near.ip("\(ip) rule del ipproto tcp prohibit")
        try await host.becomes(reachable: true)
    }

    @Test func `a self-assigned IPv4 address reaches only hosts on its own link`() async throws {
        try testbed.near.ip(
            "addr del \(VethTestbed.nearAddress)/24 dev near0",
            "addr add 169.254.7.7/16 scope link dev near0",
            "route add default dev near0 scope link metric 1002"
        )
        let remote = try WatchedHost(VethTestbed.remoteAddress, in: testbed)
        try await remote.becomes(.noSource)
        let neighbour = try WatchedHost("169.254.9.9", in: testbed)
        try await neighbour.becomes(reachable: true)
        try testbed.near.ip(
            "addr add \(VethTestbed.nearAddress)/24 dev near0",
            "route add default via \(VethTestbed.farAddress)"
        )
        try await remote.becomes(reachable: true)
    }
}
