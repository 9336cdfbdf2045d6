internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchNetlink
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

/// Hosts that are watched with properties of their connections, by which policy rules route packets.
@Suite(.needsNetworkNamespaces, .withAndWithoutFilter)
struct PathOptionsTests {
    private let testbed: VethTestbed

    init() throws {
        testbed = try VethTestbed()
    }

    /// Returns two watches of the remote host: one with the options, one without.
    private func hosts(
        _ address: String = VethTestbed.remoteAddress,
        _ change: (inout PathOptions) -> Void
    ) throws -> (special: WatchedHost, plain: WatchedHost) {
        var options = PathOptions()
        change(&options)
        return (
            try WatchedHost(address, in: testbed, options: options), try WatchedHost(address, in: testbed)
        )
    }

    @Test func `a mark prohibited by a rule makes the host unreachable`() async throws {
        let (marked, plain) = try hosts { $0.mark = 0x17 }
        try await marked.becomes(reachable: true)
        try testbed.near.ip("rule add fwmark 0x17 prohibit")
        try await marked.recorder.waitForLast { $0.reason == .prohibited }
        #expect(plain.watch.status.isReachable)
    }

    @Test func `a user ID prohibited by a rule makes the host unreachable`() async throws {
        let (other, plain) = try hosts { $0.userID = 4711 }
        try testbed.near.ip("rule add uidrange 4711-4711 prohibit")
        try await other.recorder.waitForLast { $0.reason == .prohibited }
        #expect(plain.watch.status.isReachable)
    }

    @Test(
        arguments: [VethTestbed.remoteAddress, VethTestbed.remoteIPv6Address],
        ["ipproto tcp dport 8080", "dport 8000-8100", "from all dport 8080"]
    )
    func `a port prohibited by a rule makes the host unreachable until the rule is deleted`(
        address: String,
        selector: String
    ) async throws {
        let (special, plain) = try hosts(address) { $0.port = 8080 }
        try await special.becomes(reachable: true)
        let ip = address.contains(":") ? "-6" : "-4"
        try testbed.near.ip("\(ip) rule add \(selector) prohibit")
        try await special.becomes(.prohibited)
        #expect(plain.watch.status.isReachable)
        try testbed.near.ip("\(ip) rule add dport 443 prohibit", "\(ip) rule del \(selector) prohibit")
        try await special.becomes(reachable: true)
        try testbed.near.ip("\(ip) rule del dport 443 prohibit")
        special.monitor.catchUp()
        #expect(special.transitions.suffix(3) == [true, false, true] && special.neverRepeats)
    }

    @Test func `watches of several ports follow the rules of each, and share lookups without such rules`()
        async throws
    {
        var configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.disablePeriodicLookups()
        let monitor = PathMonitor(configuration: configuration)
        let ports: [UInt16] = [80, 443, 8080]
        let watches = ports.map { port in
            var options = PathOptions()
            options.port = port
            let statuses = Recorder<PathStatus>()
            let host = NetworkHost(VethTestbed.remoteAddress)!
            return (statuses, monitor.watch(.host(host), options: options) { statuses.record($0) })
        }
        func audited() -> Int {
            _ = monitor.audit()
            let before = monitor.statistics.lookups
            _ = monitor.audit()
            return monitor.statistics.lookups - before - configuration.generalAddresses.count
        }
        for (statuses, _) in watches { try await statuses.waitForLast(\.isReachable) }
        #expect(audited() == 1)

        // Each rule appears when the previous one is already in effect.
        for (position, port) in ports.enumerated() {
            try testbed.near.ip("rule add ipproto tcp dport \(port) prohibit")
            try await watches[position].0.waitForLast { $0.reason == .prohibited }
            #expect(watches.map(\.1.status.isReachable) == ports.indices.map { $0 > position })
        }
        #expect(audited() == ports.count)
        for port in ports { try testbed.near.ip("rule del ipproto tcp dport \(port) prohibit") }
        for (statuses, _) in watches { try await statuses.waitForLast(\.isReachable) }
        #expect(audited() == 1)
        #expect(watches.allSatisfy { $0.0.values.map(\.isReachable).suffix(3) == [true, false, true] })
    }

    @Test func `an audit counts the corrections after missed rules that depend on the port`() async throws {
        var configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.disablePeriodicLookups()
        configuration.faults.ignoredClasses = [.rule]
        let monitor = PathMonitor(configuration: configuration)
        var options = PathOptions()
        options.port = 8080
        let host = NetworkHost(VethTestbed.remoteAddress)!
        let (_, plain) = monitor.record(.host(host))
        let special = Recorder<PathStatus>()
        let watch = monitor.watch(.host(host), options: options) { special.record($0) }
        try await special.waitForLast(\.isReachable)
        try testbed.near.ip("rule add ipproto tcp dport 8080 prohibit")
        _ = monitor.audit()
        try await special.waitForLast { $0.reason == .prohibited }
        #expect(monitor.audit() == 1)
        try testbed.near.ip("rule del ipproto tcp dport 8080 prohibit")
        _ = monitor.audit()
        try await special.waitForLast(\.isReachable)
        #expect(monitor.audit() == 2)
        withExtendedLifetime((plain, watch)) {}
    }

    @Test func `a single lookup of a watched host considers the port of the watch`() async throws {
        let (special, plain) = try hosts { $0.port = 8080 }
        try await special.becomes(reachable: true)
        try testbed.near.ip("rule add ipproto tcp dport 8080 prohibit")
        func verdict(_ host: WatchedHost, port: UInt16?) async -> PathStatus.Verdict? {
            await withCheckedContinuation { continuation in
                host.monitor.lookUp(host.watch.target, port: port) {
                    continuation.resume(returning: $0?.verdict)
                }
            }
        }
        #expect(await verdict(special, port: 8080) == .notReachable(.prohibited))
        #expect(await verdict(plain, port: nil)?.description.hasPrefix("reachable") == true)
        #expect(await verdict(plain, port: 8080) == nil, "the host is not watched with this port")
    }

    @Test(arguments: [VethTestbed.remoteAddress, VethTestbed.remoteIPv6Address])
    func `a required interface without a route makes the host unreachable`(address: String) async throws {
        try testbed.near.ip("link add idle0 type veth peer name idle1")
        try testbed.near.ip("link set idle1 up", "link set idle0 up", "addr add 192.0.2.129/28 dev idle0")
        try testbed.near.ip("-6 addr add 2001:db8:1::1/64 dev idle0 nodad")
        let (bound, plain) = try hosts(address) { $0.interface = "idle0" }
        try await bound.recorder.waitForLast { $0.reason == .noRoute }
        try await plain.recorder.waitForLast(\.isReachable)
        try testbed.near.ip("\(address.contains(":") ? "-6 " : "")route add default dev idle0 metric 4000")
        try await bound.recorder.waitForLast { $0.path?.interfaceName == "idle0" }
        #expect(plain.watch.status.path?.interfaceName == "near0")
    }

    @Test func `an interface that appears later is used`() async throws {
        let (bound, _) = try hosts { $0.interface = "late0" }
        try await bound.recorder.waitForLast { $0.reason == .noInterface }
        try testbed.near.ip("link set near0 down", "link set near0 name late0", "link set late0 up")
        try testbed.near.ip("route add default via \(VethTestbed.farAddress)")
        try await bound.recorder.waitForLast { $0.path?.interfaceName == "late0" }
    }

    @Test(arguments: [
        (VethTestbed.remoteAddress, "192.0.2.77"), (VethTestbed.remoteIPv6Address, "2001:db8::77"),
    ])
    func `adding and removing the source address is detected`(address: String, source: String) async throws {
        let (sourced, plain) = try hosts(address) { $0.source = IPAddress(source) }
        try await sourced.recorder.waitForLast { $0.reason == .noSource }
        try testbed.near.ip("addr add \(source)/\(address.contains(":") ? "128 nodad" : "32") dev near0")
        try await sourced.recorder.waitForLast { $0.path?.source == IPAddress(source) }
        try testbed.near.ip("addr del \(source)/\(address.contains(":") ? 128 : 32) dev near0")
        try await sourced.recorder.waitForLast { $0.reason == .noSource }
        #expect(plain.watch.status.isReachable)
    }

    @Test func `a source address selects a table by a policy rule`() async throws {
        try testbed.near.ip("addr add 192.0.2.77/32 dev near0", "rule add from 192.0.2.77 lookup 77")
        try testbed.near.ip("route add unreachable 198.51.100.0/24 table 77")
        let (sourced, plain) = try hosts { $0.source = IPAddress("192.0.2.77") }
        try await sourced.recorder.waitForLast { $0.reason == .unreachable }
        try await plain.recorder.waitForLast(\.isReachable)
        try testbed.near.ip("route replace 198.51.100.0/24 via \(VethTestbed.farAddress) table 77")
        try await sourced.recorder.waitForLast { $0.path?.table == 77 }
        #expect(sourced.watch.status.path?.prefixLength == 24)
        #expect(plain.watch.status.path?.prefixLength == 0)
    }
}
