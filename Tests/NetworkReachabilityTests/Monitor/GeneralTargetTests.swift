internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

/// The general target, which is reachable while any route out of the machine works.
@Suite(.needsNetworkNamespaces)
struct GeneralTargetTests {
    private let testbed: VethTestbed
    private let statuses = Recorder<PathStatus>()

    init() throws {
        testbed = try VethTestbed()
    }

    private func watch(_ addresses: [IPAddress]? = nil) -> PathWatch {
        var configuration = PathMonitor.Configuration(in: testbed.near)
        if let addresses { configuration.generalAddresses = addresses }
        return PathMonitor(configuration: configuration).watch(.general) { [statuses] in statuses.record($0) }
    }

    @Test func `a default route of either family is enough`() async throws {
        let watch = watch()
        try await statuses.waitForLast { $0.supportsIPv4 && $0.supportsIPv6 }
        #expect(watch.status.path?.prefixLength == 0)
        try testbed.near.ip("route del default")
        try await statuses.waitForLast { !$0.supportsIPv4 && $0.supportsIPv6 }
        #expect(watch.status.path?.destination.family == .ipv6)
        try testbed.near.ip("-6 route del default")
        try await statuses.waitForLast { $0.reason == .noRoute }
        try testbed.addDefaultRoutes()
        try await statuses.waitForLast { $0.supportsIPv4 && $0.supportsIPv6 }
    }

    @Test func `the general target is not reachable with only loopback`() async throws {
        try testbed.near.ip("link set near0 down")
        let watch = watch()
        #expect(watch.status.reason == .noRoute)
    }

    @Test func `two /1 routes in a table of a policy rule make the general target reachable`() async throws {
        try testbed.near.ip("route del default", "-6 route del default", "rule add lookup 51820")
        let watch = watch()
        try await statuses.waitForLast { $0.reason == .noRoute }
        try testbed.near.ip("route add 128.0.0.0/1 via \(VethTestbed.farAddress) table 51820")
        try await statuses.waitForLast { $0.path?.table == 51820 && $0.path?.prefixLength == 1 }
        withExtendedLifetime(watch) {}
    }

    @Test func `the general target stays reachable if one of its addresses is unreachable`() async throws {
        let watch = watch()
        try await statuses.waitForLast(\.isReachable)
        try testbed.near.ip("-6 route del default", "route add blackhole 198.41.0.4")
        try await statuses.waitForLast { $0.path?.destination == IPAddress("193.0.14.129") }
        withExtendedLifetime(watch) {}
    }

    @Test func `the general addresses are configurable`() async throws {
        let watch = watch([IPAddress("203.0.113.1")!])
        try await statuses.waitForLast(\.isReachable)
        try testbed.near.ip("route add unreachable 203.0.113.0/24")
        try await statuses.waitForLast { $0.reason == .unreachable }
        withExtendedLifetime(watch) {}
    }

    @Test func `general addresses may exceed the batch size of lookups`() throws {
        try testbed.near.ip("tuntap add tunnel0 mode tun")
        var configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.generalAddresses = (0..<200).map { IPAddress(bytes: [198, 51, 100, UInt8($0)])! }
        let monitor = PathMonitor(configuration: configuration)
        #expect(monitor.snapshot.interfaces.first { $0.name == "tunnel0" }?.medium == .veth)
        #expect(monitor.snapshot.general.isReachable)
    }
}
