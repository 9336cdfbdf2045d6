internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

/// Statuses after changes of real links, addresses, routes, rules and next hops, made with `ip` in separate namespaces.
@Suite(.needsNetworkNamespaces)
struct NetworkChangeTests {
    /// The values of `isFiltered`: whether the monitor uses the kernel filter, which drops notifications of routes that
    /// cover no watched host.
    private static let filterSettings = [true, false]

    @Test(arguments: filterSettings) func `a link going down and up is detected`(isFiltered: Bool)
        async throws
    {
        let host = try WatchedHost(VethTestbed.farAddress, in: try VethTestbed(), isFiltered: isFiltered)
        try await host.becomes(reachable: true)
        try host.testbed.near.ip("link set near0 down")
        try await host.becomes(.noRoute)
        try host.testbed.near.ip("link set near0 up")
        try await host.becomes(reachable: true)
        #expect(host.transitions == [true, false, true])
    }

    @Test(arguments: filterSettings) func `a cable pulled at the far end is detected without a route change`(
        isFiltered: Bool
    )
        async throws
    {
        let host = try WatchedHost(VethTestbed.remoteAddress, in: try VethTestbed(), isFiltered: isFiltered)
        try await host.becomes(reachable: true)
        try host.testbed.setCable(connected: false)
        try await host.becomes(.noCarrier)
        try host.testbed.setCable(connected: true)
        try await host.becomes(reachable: true)
        #expect(host.transitions == [true, false, true])
    }

    @Test(arguments: filterSettings)
    func `removing the last address is detected, although its routes disappear without notification`(
        isFiltered: Bool
    ) async throws {
        let host = try WatchedHost(VethTestbed.remoteAddress, in: try VethTestbed(), isFiltered: isFiltered)
        try await host.becomes(reachable: true)
        try host.testbed.near.ip("addr del \(VethTestbed.nearAddress)/24 dev near0")
        try await host.becomes(.noRoute)
        try host.testbed.near.ip("addr add \(VethTestbed.nearAddress)/24 dev near0")
        try host.testbed.addDefaultRoutes()
        try await host.becomes(reachable: true)
    }

    @Test(arguments: filterSettings) func `adding and removing a route is detected`(isFiltered: Bool)
        async throws
    {
        let testbed = try VethTestbed()
        try testbed.near.ip("route del default")
        let host = try WatchedHost(VethTestbed.remoteAddress, in: testbed, isFiltered: isFiltered)
        try await host.becomes(.noRoute)
        try testbed.near.ip("route add 198.51.100.0/24 via \(VethTestbed.farAddress)")
        try await host.becomes(reachable: true)
        try testbed.near.ip("route del 198.51.100.0/24")
        try await host.becomes(.noRoute)
        #expect(host.neverRepeats)
    }

    @Test(
        arguments: [
            ("blackhole", PathStatus.Reason.blackhole),
            ("unreachable", .unreachable),
            ("prohibit", .prohibited),
        ],
        filterSettings
    )
    func `a route that rejects packets is detected with its reason`(
        _ route: (type: String, reason: PathStatus.Reason),
        isFiltered: Bool
    )
        async throws
    {
        for address in [VethTestbed.remoteAddress, VethTestbed.remoteIPv6Address] {
            let host = try WatchedHost(address, in: try VethTestbed(), isFiltered: isFiltered)
            try await host.becomes(reachable: true)
            try host.testbed.near.ip("route add \(route.type) \(address)")
            try await host.becomes(route.reason)
            try host.testbed.near.ip("route del \(route.type) \(address)")
            try await host.becomes(reachable: true)
        }
    }

    @Test(arguments: filterSettings) func `an IPv6 host needs a global source address`(
        isFiltered: Bool
    ) async throws {
        let testbed = try VethTestbed()
        try testbed.near.ip("-6 addr add fe80::1/64 dev near0 nodad")
        let host = try WatchedHost(VethTestbed.remoteIPv6Address, in: testbed, isFiltered: isFiltered)
        try await host.becomes(reachable: true)
        try host.testbed.near.ip("-6 route replace default dev near0")
        try host.testbed.near.ip("-6 addr del 2001:db8::1/64 dev near0")
        try await host.becomes(.noSource)
        try host.testbed.near.ip("-6 addr add 2001:db8::1/64 dev near0 nodad")
        try await host.becomes(reachable: true)
    }

    @Test(arguments: filterSettings) func `an IPv6 address is usable after duplicate address detection`(
        isFiltered: Bool
    ) async throws {
        let testbed = try VethTestbed()
        try testbed.near.ip("-6 addr add fe80::1/64 dev near0 nodad")
        try testbed.near.ip("-6 addr del 2001:db8::1/64 dev near0")
        try testbed.near.ip("-6 route replace default dev near0")
        let host = try WatchedHost(VethTestbed.remoteIPv6Address, in: testbed, isFiltered: isFiltered)
        try await host.becomes(.noSource)
        try testbed.near.ip("-6 addr add 2001:db8::1/64 dev near0")
        try await host.becomes(reachable: true)
    }

    @Test(arguments: filterSettings) func `a prohibiting policy rule is detected`(isFiltered: Bool)
        async throws
    {
        let host = try WatchedHost(VethTestbed.remoteAddress, in: try VethTestbed(), isFiltered: isFiltered)
        try await host.becomes(reachable: true)
        try host.testbed.near.ip("rule add to \(VethTestbed.remoteAddress) prohibit")
        try await host.becomes(.prohibited)
        try host.testbed.near.ip("rule del to \(VethTestbed.remoteAddress) prohibit")
        try await host.becomes(reachable: true)
    }

    @Test(arguments: filterSettings)
    func `deleting a next hop object is detected, although its routes disappear without notification`(
        isFiltered: Bool
    ) async throws {
        let testbed = try VethTestbed()
        try testbed.near.ip("route del default")
        try testbed.near.ip("nexthop add id 7 via \(VethTestbed.farAddress) dev near0")
        try testbed.near.ip("route add 198.51.100.0/24 nhid 7")
        let host = try WatchedHost(VethTestbed.remoteAddress, in: testbed, isFiltered: isFiltered)
        try await host.becomes(reachable: true)
        try testbed.near.ip("nexthop del id 7")
        try await host.becomes(.noRoute)
    }

    @Test(arguments: filterSettings)
    func `a host that is offline at the start is reported immediately and once`(
        isFiltered: Bool
    ) async throws {
        let testbed = try VethTestbed()
        try testbed.near.ip("link set near0 down")
        let host = try WatchedHost(VethTestbed.farAddress, in: testbed, isFiltered: isFiltered)
        #expect(host.watch.status.reason == .noRoute)
        try await host.becomes(.noRoute)
        #expect(host.recorder.values.count == 1)
    }

    @Test(arguments: filterSettings) func `this machine's own addresses are local regardless of the links`(
        isFiltered: Bool
    ) async throws {
        let testbed = try VethTestbed()
        let host = try WatchedHost("127.0.0.1", in: testbed, isFiltered: isFiltered)
        try await host.becomes(reachable: true)
        #expect(host.watch.status.path?.isLocal == true)
        try testbed.near.ip("link set near0 down")
        let other = try WatchedHost(VethTestbed.farAddress, in: testbed, isFiltered: isFiltered)
        try await other.becomes(.noRoute)
        #expect(host.watch.status.isReachable)
    }

    @Test(arguments: filterSettings) func `a new gateway keeps the status and increases the path generation`(
        isFiltered: Bool
    ) async throws {
        let host = try WatchedHost(VethTestbed.remoteAddress, in: try VethTestbed(), isFiltered: isFiltered)
        try await host.becomes(reachable: true)
        let before = host.watch.status.pathGeneration
        try host.testbed.near.ip("route replace default via 192.0.2.3")
        try await host.recorder.waitForLast { $0.pathGeneration > before }
        #expect(host.watch.status.path?.gateway == IPAddress("192.0.2.3"))
        #expect(host.recorder.values.allSatisfy { $0.isReachable })
    }

    @Test(arguments: filterSettings) func `the general target follows the default route`(isFiltered: Bool)
        async throws
    {
        let testbed = try VethTestbed()
        let host = try WatchedHost(VethTestbed.farAddress, in: testbed, isFiltered: isFiltered)
        let general = Recorder<PathStatus>()
        let watch = host.monitor.watch(.general) { general.record($0) }
        defer { watch.cancel() }
        try await general.waitForLast(\.isReachable)
        try testbed.near.ip("route del default")
        try testbed.near.ip("-6 route del default")
        try await general.waitForLast { $0.reason == .noRoute }
        #expect(host.watch.status.isReachable)
    }

    @Test(arguments: filterSettings) func `the expiry of an IPv6 route is detected before its notification`(
        isFiltered: Bool
    ) async throws {
        let host = try WatchedHost(
            VethTestbed.remoteIPv6Address,
            in: try VethTestbed(),
            isFiltered: isFiltered
        )
        try await host.becomes(reachable: true)
        try host.testbed.near.ip("-6 route replace default via \(VethTestbed.farIPv6Address) expires 2")
        // The kernel's notification of the expiry comes up to 30 s later.
        try await host.recorder.waitForLast(timeout: .seconds(20)) { $0.reason == .noRoute }
    }
}
