internal import NetwatchEventLoop
internal import NetwatchNetlink
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

/// Routes of real router advertisements. The kernel announces only the first advertisement of a route, and the later
/// collection of an expired route.
@Suite(.needsNetworkNamespaces, .withAndWithoutFilter)
struct RouterAdvertisementTests {
    private static let router = "fe80::2"
    private static let onLinkHost = "2001:db8:5::9"

    private let testbed: VethTestbed

    init() throws {
        testbed = try VethTestbed()
        try testbed.far.ip("addr add \(Self.router)/64 dev far0 nodad")
        try testbed.near.ip("addr add fe80::1/64 dev near0 nodad", "-6 route del default")
        for (parameter, value) in [
            ("accept_ra", "2"), ("accept_ra_rt_info_max_plen", "128"), ("autoconf", "0"),
        ] {
            try testbed.near.setParameter("net/ipv6/conf/near0/\(parameter)", to: value)
        }
    }

    private func advertise(_ advertisement: RouterAdvertisement) throws {
        try advertisement.send(from: Self.router, on: "far0", in: testbed.far)
    }

    /// Returns an advertisement of a route to the watched host.
    private func advertisement(ofRoute isRoute: Bool, lifetime: UInt16) -> RouterAdvertisement {
        isRoute
            ? RouterAdvertisement(routes: [.init("2001:db8:ffff::/48", lifetime: UInt32(lifetime))])
            : RouterAdvertisement(routerLifetime: lifetime)
    }

    @Test(arguments: [true, false])
    func `a route that an advertisement renews after its expiry is detected`(isRoute: Bool) async throws {
        let host = try WatchedHost(VethTestbed.remoteIPv6Address, in: testbed)
        try await host.becomes(.noRoute)
        try advertise(advertisement(ofRoute: isRoute, lifetime: 2))
        try await host.recorder.wait { statuses in
            statuses.contains(where: \.isReachable) && statuses.last?.reason == .noRoute
        }
        try advertise(advertisement(ofRoute: isRoute, lifetime: 1800))
        try await host.becomes(reachable: true)
        #expect(host.transitions == [false, true, false, true])
    }

    @Test(arguments: [true, false])
    func `an advertisement that shortens a lifetime is detected`(isRoute: Bool) async throws {
        try advertise(advertisement(ofRoute: isRoute, lifetime: 1800))
        let host = try WatchedHost(VethTestbed.remoteIPv6Address, in: testbed)
        try await host.becomes(reachable: true)
        try advertise(advertisement(ofRoute: isRoute, lifetime: 1))
        try await host.becomes(.noRoute)
    }

    @Test func `an advertised route that had expired before the watch began is detected when it is renewed`()
        async throws
    {
        try advertise(RouterAdvertisement(routerLifetime: 1))
        let oracle = SocketOracle(namespace: testbed.near)
        let address = try #require(IPAddress(VethTestbed.remoteIPv6Address))
        // The kernel does not announce the expiry.
        try await poll {
            if case .refuses = oracle.ask(about: address) { true } else { false }
        }
        let host = try WatchedHost(VethTestbed.remoteIPv6Address, in: testbed)
        try await host.becomes(.noRoute)
        try advertise(RouterAdvertisement(routerLifetime: 1800))
        try await host.becomes(reachable: true)
    }

    @Test func `an unlimited route that becomes limited is detected when it expires and when it is renewed`()
        async throws
    {
        func advertise(lifetime: UInt32) throws {
            let route = RouterAdvertisement.Prefix("2001:db8:ffff::/48", lifetime: lifetime)
            let prefix = RouterAdvertisement.Prefix("2001:db8:5::/64", lifetime: lifetime)
            try self.advertise(RouterAdvertisement(routes: [route], onLinkPrefixes: [prefix]))
        }
        try advertise(lifetime: .max)
        let hosts = try [VethTestbed.remoteIPv6Address, Self.onLinkHost].map {
            try WatchedHost($0, in: testbed)
        }
        for host in hosts { try await host.becomes(reachable: true) }
        try advertise(lifetime: 1)
        for host in hosts { try await host.becomes(.noRoute) }
        try advertise(lifetime: .max)
        for host in hosts { try await host.becomes(reachable: true) }
    }

    /// The lookups of new IPv6 addresses, which would hide a missed notification, are turned off.
    @Test func `an advertisement of an on-link prefix is an event of its route`() async throws {
        func advertise(lifetime: UInt32) throws {
            try self.advertise(
                RouterAdvertisement(onLinkPrefixes: [.init("2001:db8:5::/64", lifetime: lifetime)])
            )
        }
        try advertise(lifetime: 1800)
        let events = Recorder<NetlinkEvent>()
        var configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.disablePeriodicLookups()
        configuration.faults.interceptor = { batch in
            for event in batch.events { events.record(event) }
            return batch
        }
        let monitor = PathMonitor(configuration: configuration)
        monitor.catchUp()
        try advertise(lifetime: 1700)
        let prefix = IPPrefix(try #require(IPAddress("2001:db8:5::")), length: 64)
        try await events.wait { $0.contains(.route(prefix)) }
    }

    @Test func `a thousand advertised routes are renewed after their expiry`() async throws {
        let prefixes = (0..<1000).map { "2001:db8:ffff:\(String($0, radix: 16))::/64" }
        func advertise(lifetime: UInt32) throws {
            for start in stride(from: 0, to: 1000, by: 50) {
                let routes = prefixes[start..<start + 50].map {
                    RouterAdvertisement.Prefix($0, lifetime: lifetime)
                }
                try self.advertise(RouterAdvertisement(routes: routes))
            }
        }
        var configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.auditInterval = .seconds(3600)
        let monitor = PathMonitor(configuration: configuration)
        let statuses = (0..<1000).map { monitor.record("2001:db8:ffff:\(String($0, radix: 16))::1") }
        func become(reachable: Bool) async throws {
            for (statuses, _) in statuses { try await statuses.waitForLast { $0.isReachable == reachable } }
        }
        try advertise(lifetime: 1800)
        try await become(reachable: true)
        try advertise(lifetime: 1)
        try await become(reachable: false)
        try advertise(lifetime: 1800)
        try await become(reachable: true)
    }
}
