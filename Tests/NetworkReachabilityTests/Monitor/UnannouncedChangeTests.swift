internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

/// Path changes for which the kernel sends no notification, or one of another kind than a route change.
/// ``NetworkChangeTests`` contains more of them.
@Suite(.needsNetworkNamespaces, .withAndWithoutFilter)
struct UnannouncedChangeTests {
    private static let hasVRF: Bool = {
        guard let namespace = try? NetworkNamespace() else { return false }
        return (try? namespace.ip("link add vrf0 type vrf table 10")) != nil
    }()

    // MARK: Next hop objects

    @Test(arguments: ["0", "1"], [VethTestbed.remoteAddress, VethTestbed.remoteIPv6Address])
    func `replacing a next hop object is detected, with and without notifications of its routes`(
        compatibility: String,
        address: String
    ) async throws {
        let testbed = try VethTestbed()
        try testbed.near.setParameter("net/ipv4/nexthop_compat_mode", to: compatibility)
        let isIPv4 = address == VethTestbed.remoteAddress
        let hop = "via \(isIPv4 ? VethTestbed.farAddress : VethTestbed.farIPv6Address) dev near0"
        try testbed.near.ip("nexthop add id 7 \(hop)", "route add \(address) nhid 7")
        let host = try WatchedHost(address, in: testbed)
        try await host.becomes(reachable: true)
        try testbed.near.ip("\(isIPv4 ? "-4" : "-6") nexthop replace id 7 blackhole")
        try await host.becomes(.blackhole)
        try testbed.near.ip("nexthop replace id 7 \(hop)")
        try await host.becomes(reachable: true)
        try testbed.near.ip(
            "route del default",
            "-6 route del default",
            "nexthop del id 7"
        )
        try await host.becomes(.noRoute)
    }

    @Test func `deleting the used member of a next hop group is detected`() async throws {
        let testbed = try VethTestbed()
        try testbed.near.ip(
            "nexthop add id 1 via \(VethTestbed.farAddress) dev near0",
            "nexthop add id 2 via 192.0.2.3 dev near0",
            "nexthop add id 3 group 1/2",
            "route add \(VethTestbed.remoteAddress) nhid 3"
        )
        let host = try WatchedHost(VethTestbed.remoteAddress, in: testbed)
        try await host.becomes(reachable: true)
        let gateway = try #require(host.watch.status.path?.gateway)
        try testbed.near.ip("nexthop del id \(gateway == IPAddress("192.0.2.3") ? 2 : 1)")
        try await host.recorder.waitForLast { $0.path?.gateway != gateway }
        try await host.becomes(reachable: true)
    }

    // MARK: Rules

    @Test(arguments: [VethTestbed.remoteAddress, VethTestbed.remoteIPv6Address])
    func `a policy rule that selects another table is detected`(address: String) async throws {
        let testbed = try VethTestbed()
        let isIPv4 = address == VethTestbed.remoteAddress
        let (ip, gateway) = isIPv4 ? ("-4", VethTestbed.farAddress) : ("-6", VethTestbed.farIPv6Address)
        try testbed.near.ip("\(ip) route del default", "\(ip) route add default via \(gateway) table 70")
        let host = try WatchedHost(address, in: testbed)
        try await host.becomes(.noRoute)
        try testbed.near.ip("\(ip) rule add to \(address) lookup 70")
        try await host.becomes(reachable: true)
        try testbed.near.ip("\(ip) route replace prohibit default table 70")
        try await host.becomes(.prohibited)
        try testbed.near.ip("\(ip) rule del to \(address) lookup 70")
        try await host.becomes(.noRoute)
    }

    @Test(arguments: [VethTestbed.remoteAddress, VethTestbed.remoteIPv6Address])
    func `an unreachable rule is reported as a missing route`(
        address: String
    ) async throws {
        let host = try WatchedHost(address, in: try VethTestbed())
        let ip = address == VethTestbed.remoteAddress ? "-4" : "-6"
        try await host.becomes(reachable: true)
        try host.testbed.near.ip("\(ip) rule add to \(address) unreachable")
        try await host.becomes(.noRoute)
        try host.testbed.near.ip("\(ip) rule del to \(address) unreachable")
        try await host.becomes(reachable: true)
    }

    // MARK: Links

    @Test func `the setting that ignores routes without carrier is detected`() async throws {
        let testbed = try VethTestbed()
        try testbed.addSecondCable()
        try testbed.near.ip("route add default via 203.0.113.2 metric 100")
        let host = try WatchedHost(VethTestbed.remoteAddress, in: testbed)
        try await host.becomes(reachable: true)
        try testbed.setCable(connected: false)
        try await host.becomes(.noCarrier)
        let setting = "net/ipv4/conf/near0/ignore_routes_with_linkdown"
        try testbed.near.setParameter(setting, to: "1")
        try await host.becomes(reachable: true)
        #expect(host.watch.status.path?.interfaceName == "near1")
        try testbed.near.setParameter(setting, to: "0")
        try await host.becomes(.noCarrier)
    }

    /// The only notification is that of the route for the interface's multicast addresses.
    @Test func `re-enabling IPv6 on an interface revives its dead next hops`()
        async throws
    {
        let testbed = try VethTestbed()
        try testbed.addSecondCable()
        try testbed.near.ip(
            "addr add 2001:db8:1::1/64 dev near1 nodad",
            "-6 route append default via 2001:db8:1::2 dev near1"
        )
        let address = try #require(firstAddress(over: "near0", in: testbed.near))
        // The confirmation and the lookups after a change would find the change without the notification.
        let host = try WatchedHost(
            address,
            in: testbed,
            confirmDelay: .seconds(3600),
            ignoresLifetimes: true
        )
        try await host.becomes(reachable: true)
        try testbed.near.setParameter("net/ipv6/conf/near0/disable_ipv6", to: "1")
        try testbed.far.ip("link set far1 down")
        try await host.becomes(.noCarrier)
        try testbed.near.setParameter("net/ipv6/conf/near0/disable_ipv6", to: "0")
        try await host.recorder.waitForLast { $0.path?.interfaceName == "near0" }
    }

    /// Returns an address for which the kernel uses the interface; `nil` if none is found.
    ///
    /// If a route has several next hops, the kernel chooses one by a hash, whose seed changes with each boot. The hash
    /// includes the protocol.
    private func firstAddress(over interface: String, in namespace: NetworkNamespace) -> String? {
        (1...64).map { "2001:db8:ffff::\($0)" }.first { address in
            (try? namespace.shell("ip route get \(address) ipproto tcp | grep -q \(interface)")) != nil
        }
    }

    @Test func `a link that leaves a bridge is not treated as deleted`() async throws {
        let testbed = try VethTestbed()
        try testbed.near.ip("link add br0 type bridge", "link set br0 up")
        let host = try WatchedHost(VethTestbed.farAddress, in: testbed)
        try await host.becomes(reachable: true)
        try testbed.near.ip("link set near0 master br0", "link set near0 nomaster")
        // The next change follows, so that its status proves that the monitor has processed the first one.
        try testbed.near.ip("route add blackhole \(VethTestbed.farAddress)")
        try await host.becomes(.blackhole)
        try testbed.near.ip("route del blackhole \(VethTestbed.farAddress)")
        try await host.becomes(reachable: true)
        #expect(host.transitions == [true, false, true])
        #expect(host.recorder.values.compactMap(\.reason) == [.blackhole])
    }

    @Test(.enabled(if: hasVRF, "this kernel has no VRF"))
    func `moving a link into a VRF is detected`() async throws {
        let host = try WatchedHost(VethTestbed.farAddress, in: try VethTestbed())
        try await host.becomes(reachable: true)
        try host.testbed.near.ip(
            "link add vrf0 type vrf table 10",
            "link set vrf0 up",
            "link set near0 master vrf0"
        )
        try await host.becomes(.noRoute)
        try host.testbed.near.ip("link set near0 nomaster")
        try await host.becomes(reachable: true)
    }

    // MARK: Addresses

    @Test func `an address that fails duplicate address detection is not used as source`() async throws {
        let testbed = try VethTestbed()
        try testbed.near.ip(
            "-6 addr add fe80::1/64 dev near0 nodad",
            "-6 addr del 2001:db8::1/64 dev near0",
            "-6 route replace default dev near0"
        )
        try testbed.far.ip("-6 addr add 2001:db8::1/64 dev far0 nodad")
        let host = try WatchedHost(VethTestbed.remoteIPv6Address, in: testbed)
        try await host.becomes(.noSource)
        try testbed.near.ip("-6 addr add 2001:db8::1/64 dev near0")
        try testbed.near.wait(until: "-6 addr show dev near0", prints: "dadfailed")
        try testbed.near.ip("-6 addr add 2001:db8::9/64 dev near0 nodad")
        try await host.becomes(reachable: true)
        #expect(host.watch.status.path?.source == IPAddress("2001:db8::9"))
        #expect(host.transitions == [false, true])
    }

    @Test func `deprecating the source address is detected`() async throws {
        let testbed = try VethTestbed()
        try testbed.near.ip("-6 addr add 2001:db8::9/64 dev near0 nodad")
        let host = try WatchedHost(VethTestbed.remoteIPv6Address, in: testbed)
        try await host.becomes(reachable: true)
        let (source, generation) = (host.watch.status.path?.source, host.watch.status.pathGeneration)
        for address in ["2001:db8::1", "2001:db8::9"] where IPAddress(address) == source {
            try testbed.near.ip("-6 addr change \(address)/64 dev near0 valid_lft forever preferred_lft 0")
        }
        try await host.recorder.waitForLast { $0.path?.source != source }
        try await host.becomes(reachable: true)
        #expect(host.watch.status.pathGeneration > generation)
    }

    @Test
    func `the expiry of an IPv6 route is detected if the last lookup was in its final 10 ms`()
        async throws
    {
        let testbed = try VethTestbed()
        // At least one of the confirmations looks up the route in the last 10 ms of its lifetime.
        let hosts = try (0..<8).map { number in
            try WatchedHost(
                VethTestbed.remoteIPv6Address,
                in: testbed,
                confirmDelay: .milliseconds(1970 + 5 * number)
            )
        }
        for host in hosts { try await host.becomes(reachable: true) }
        try testbed.near.ip("-6 route replace default via \(VethTestbed.farIPv6Address) expires 2")
        for host in hosts {
            try await host.recorder.waitForLast(timeout: .seconds(20)) { $0.reason == .noRoute }
        }
    }

    // MARK: This machine

    @Test func `loopback that was never up, goes up and goes down is detected`() async throws {
        // While loopback has never been up, the kernel would send packets for 127.0.0.1 over the default route.
        let testbed = try VethTestbed(near: NetworkNamespace(hasLoopback: false))
        let hosts = try ["127.0.0.1", "::1"].map { try WatchedHost($0, in: testbed) }
        for host in hosts { try await host.becomes(.loopbackDown) }
        try testbed.near.ip("route del default", "-6 route del default")
        for host in hosts { try await host.becomes(.noRoute) }
        try testbed.near.ip("link set lo up")
        for host in hosts { try await host.becomes(reachable: true) }
        #expect(hosts.allSatisfy { $0.watch.status.path?.isLocal == true })
        try testbed.near.ip("link set lo down")
        // The kernel still has a local route for 127.0.0.1, but cannot use it.
        try await hosts[0].becomes(.loopbackDown)
        try await hosts[1].becomes(.noRoute)
    }

    @Test func `when a link goes down, only its IPv4 address stays reachable`() async throws {
        let testbed = try VethTestbed()
        let hosts = try [VethTestbed.nearAddress, "2001:db8::1"].map { try WatchedHost($0, in: testbed) }
        for host in hosts { try await host.becomes(reachable: true) }
        #expect(hosts.allSatisfy { $0.watch.status.path?.isLocal == true })
        try testbed.near.ip("link set near0 down")
        try await hosts[1].becomes(.noRoute)
        try await hosts[0].becomes(reachable: true)
        #expect(hosts[0].transitions == [true])
    }
}

extension VethTestbed {
    /// Adds a second cable, from `near1` with the address 203.0.113.1 to `far1` with the address 203.0.113.2.
    fileprivate func addSecondCable() throws {
        try near.ip("link add near1 type veth peer name far1 netns \(far.path)")
        try near.ip("link set near1 addrgenmode none")
        try far.ip("link set far1 addrgenmode none", "addr add 203.0.113.2/24 dev far1", "link set far1 up")
        try near.ip("addr add 203.0.113.1/24 dev near1", "link set near1 up")
        try near.wait(until: "-br link show near1", prints: " UP ")
    }
}
