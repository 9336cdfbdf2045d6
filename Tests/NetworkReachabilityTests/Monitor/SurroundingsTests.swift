internal import NetwatchEventLoop
internal import NetwatchNetlink
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

/// Changes other than routes that a monitor detects.
@Suite(.enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"))
struct SurroundingsTests {
    private let testbed: VethTestbed
    private var configuration = PathMonitor.Configuration()

    init() throws {
        testbed = try VethTestbed()
        configuration.networkNamespace = testbed.near.path
        // Only the test causes lookups.
        configuration.confirmDelay = .seconds(3600)
        configuration.auditInterval = .seconds(3600)
    }

    @Test func `after a suspension the path generation increases even if the path is unchanged`() async throws
    {
        let monitor = PathMonitor(configuration: configuration)
        let statuses = Recorder<PathStatus>()
        let watch = monitor.watch(.host(NetworkHost(VethTestbed.remoteAddress)!)) { statuses.record($0) }
        let before = watch.status
        monitor.revalidate()
        try await statuses.waitForLast { $0.pathGeneration == before.pathGeneration + 1 }
        #expect(watch.status.verdict == before.verdict)
        #expect(statuses.values.count == 2)
    }

    @Test func `a change during a suspension is detected on resume`() async throws {
        var configuration = configuration
        // Loses all announcements.
        configuration.faults.interceptor = { _ in .init() }
        let monitor = PathMonitor(configuration: configuration)
        let watch = monitor.watch(.host(NetworkHost(VethTestbed.remoteAddress)!)) { _ in }
        #expect(watch.status.isReachable)
        try testbed.near.ip("route add blackhole \(VethTestbed.remoteAddress)")
        monitor.catchUp()
        #expect(watch.status.isReachable)
        monitor.revalidate()
        let statuses = Recorder<PathStatus>()
        let other = monitor.watch(watch.target) { statuses.record($0) }
        try await statuses.waitForLast { $0.reason == .blackhole }
        other.cancel()
    }

    @Test func `names are resolved again when the resolver's files change`() async throws {
        let directory = try ScratchDirectory()
        var configuration = configuration
        configuration.resolverFiles = [directory.file("resolv.conf")]
        let lookups = Recorder<String>()
        let resolver = NameResolver(lookUp: { name in
            lookups.record(name)
            return .success([IPAddress(lookups.values.count == 1 ? "203.0.113.1" : "203.0.113.2")!])
        })
        let monitor = PathMonitor(configuration: configuration, resolver: resolver)
        let statuses = Recorder<PathStatus>()
        let watch = monitor.watch(.host(NetworkHost("name.example")!)) { statuses.record($0) }
        try await statuses.waitForLast { $0.path?.destination == IPAddress("203.0.113.1") }
        try shell(
            "echo nameserver 192.0.2.2 > \(directory.file("new")) && mv \(directory.file("new")) \(directory.file("resolv.conf"))"
        )
        try await statuses.waitForLast { $0.path?.destination == IPAddress("203.0.113.2") }
        withExtendedLifetime(watch) {}
    }

    @Test func `a path contains the type and the medium of its interface`() async throws {
        try testbed.near.ip(
            "link add tunnel0 type vxlan id 7 dev near0 remote \(VethTestbed.farAddress) dstport 4789",
            "addr add 203.0.113.1/24 dev tunnel0",
            "link set tunnel0 up"
        )
        let monitor = PathMonitor(configuration: configuration)
        let inside = Recorder<PathStatus>()
        let watch = monitor.watch(.host(NetworkHost("203.0.113.9")!)) { inside.record($0) }
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
