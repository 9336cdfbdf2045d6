internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

/// Probes over loopback.
@Suite(.timeLimit(.minutes(5))) struct TCPProbeTests {
    private let path: NetworkPath

    init() throws {
        let host = try #require(NetworkHost("127.0.0.1"))
        path = try #require(PathMonitor.shared.watch(.host(host)) { _ in }.status.path)
    }

    @Test func `a successful connection is valid and closed without sending anything`() async throws {
        let server = try ScriptedServer()
        let result = await TCPProbe(port: server.port, timeout: .seconds(60)).run(to: nil, over: path)
        #expect(result.validation == .valid)
        #expect(try #require(result.latency) > .zero)
        #expect(await server.peers(atLeast: 1) == [IPAddress("127.0.0.1")])
        await server.openConnections(atMost: 0)
        #expect(server.requests.isEmpty)
    }

    @Test func `a refused connection fails with a latency`() async throws {
        let port = try RefusingPort()
        let result = await TCPProbe(port: port.port, timeout: .seconds(60)).run(to: nil, over: path)
        #expect(result.validation == .failed("connection refused"))
        #expect(result.latency != nil)
    }

    @Test func `a connection attempt without an answer fails after the timeout`() async throws {
        let port = try UnansweringPort()
        let probe = TCPProbe(port: port.port, timeout: .milliseconds(50))
        let result = await probe.run(to: nil, over: path)
        #expect(result.validation == .failed("no connection within 0.05 seconds"))
        #expect(result.latency == nil)
    }

    private func path(to address: String) throws -> NetworkPath {
        let host = try #require(NetworkHost(address))
        return try #require(PathMonitor.shared.watch(.host(host)) { _ in }.status.path)
    }

    @Test func `if the first address does not answer, a connection to another one is valid`()
        async throws
    {
        let silent = try UnansweringPort()
        let server = try ScriptedServer(address: "127.0.0.2", port: silent.port)
        let paths = [path, try path(to: "127.0.0.2")]
        let result = await TCPProbe(port: server.port, timeout: .seconds(60)).run(to: nil, over: paths)
        #expect(result.validation == .valid)
        #expect(await server.peers(atLeast: 1).count == 1)
    }

    @Test func `if the attempts to all addresses fail, the message lists all addresses`() async throws {
        let port = try RefusingPort()
        let paths = [path, try path(to: "127.0.0.2")]
        let result = await TCPProbe(port: port.port, timeout: .seconds(60)).run(to: nil, over: paths)
        #expect(
            result.validation
                == .failed("127.0.0.1: connection refused; 127.0.0.2: connection refused")
        )
        #expect(result.latency != nil)
    }

    @Test func `a validator passes the paths to all addresses of its host to a racing probe`() async throws {
        let resolver = NameResolver { _ in
            .success(["127.0.0.1", "127.0.0.2"].compactMap { IPAddress($0) })
        }
        let monitor = PathMonitor(configuration: .init(), resolver: resolver)
        let silent = try UnansweringPort()
        let server = try ScriptedServer(address: "127.0.0.2", port: silent.port)
        let results = Recorder<ValidatedStatus>()
        let validator = PathValidator(
            monitor: monitor,
            target: .host(try #require(NetworkHost("two.invalid"))),
            probe: TCPProbe(port: server.port, timeout: .seconds(60)),
            interval: nil
        ) { results.record($0) }
        defer { validator.cancel() }
        try await results.waitForLast { $0.probe?.validation == .valid }
    }

    @Test func `cancelling ends an attempt immediately`() async throws {
        let port = try UnansweringPort()
        let probe = TCPProbe(port: port.port, timeout: .seconds(60))
        let started = BootInstant.now
        let task = Task { await probe.run(to: nil, over: path) }
        // The connection that fills the backlog is established, so this one is the probe's. The kernel reports no event
        // for it.
        let number = port.port
        try await poll { try !shell("ss -Htn state syn-sent 'dport = :\(number)'").isEmpty }
        task.cancel()
        #expect(await task.value.validation == .failed("cancelled"))
        #expect(started.duration(to: .now) < probe.timeout)
    }

    @Test func `an attempt cancelled before its start makes no connection`() async throws {
        let server = try ScriptedServer()
        let probe = TCPProbe(port: server.port, timeout: .seconds(60))
        let task = Task {
            await waitForCancellation()
            return await probe.run(to: nil, over: path)
        }
        task.cancel()
        #expect(await task.value.validation == .failed("cancelled"))
        #expect(server.connectionCount == 0)
    }

    @Test func `many concurrent attempts all end`() async throws {
        let server = try ScriptedServer()
        let probe = TCPProbe(port: server.port, timeout: .seconds(60))
        let results = await withTaskGroup(of: ProbeResult.self) { group in
            for _ in 0..<100 { group.addTask { await probe.run(to: nil, over: path) } }
            return await group.reduce(into: []) { $0.append($1.validation) }
        }
        #expect(results == Array(repeating: .valid, count: 100))
    }

    @Test func `timeouts are clamped to their range`() {
        #expect(TCPProbe(port: 443).timeout == .seconds(3))
        #expect(TCPProbe(port: 443, timeout: .zero).timeout == .milliseconds(10))
        #expect(TCPProbe(port: 443, timeout: .seconds(3600)).timeout == .seconds(60))
        #expect(TCPProbe(port: 443).name == "tcp 443")
    }

    @Test func `if no thread can be started, the result contains the reason`() async {
        let probe = TCPProbe(port: 443, loop: ProbeLoop(networkNamespace: "/no/such/namespace"))
        let result = await probe.run(to: nil, over: path)
        #expect(result.validation == .failed("open /no/such/namespace: No such file or directory"))
    }
}

/// Probes over veth pairs in network namespaces.
@Suite(
    .needsNetworkNamespaces,
    .timeLimit(.minutes(5))
)
struct TCPProbePathTests {
    private let testbed: TwoCableTestbed
    private let monitor: PathMonitor
    private let loop: ProbeLoop

    init() throws {
        testbed = try TwoCableTestbed()
        loop = ProbeLoop(networkNamespace: testbed.near.path)
        monitor = PathMonitor(configuration: .init(in: testbed.near))
    }

    private func target(_ host: String) throws -> PathTarget {
        .host(try #require(NetworkHost(host)))
    }

    /// Returns the path to the host of the testbed.
    private func path(_ change: (inout PathOptions) -> Void = { _ in }) throws -> NetworkPath {
        var options = PathOptions()
        change(&options)
        let watch = monitor.watch(try target(TwoCableTestbed.host), options: options) { _ in }
        return try #require(watch.status.path)
    }

    @Test func `a probe uses the interface that the watch requires, otherwise the preferred route`()
        async throws
    {
        let server = try ScriptedServer(address: TwoCableTestbed.host, in: testbed.far)
        let paths = [try path { $0.interface = "near0" }, try path(), try path { $0.interface = "near1" }]
        let probe = TCPProbe(port: server.port, timeout: .seconds(60), loop: loop)
        for path in paths { #expect(await probe.run(to: nil, over: path).validation == .valid) }
        let sources = [testbed.first.source, testbed.second.source, testbed.second.source]
        #expect(await server.peers(atLeast: 3) == sources)
    }

    @Test(arguments: ["oif near1", "oif near1 from 203.0.113.1"])
    func `a rule for bound sockets affects a probe only if the watch requires the interface`(rule: String)
        async throws
    {
        let server = try ScriptedServer(address: TwoCableTestbed.host, in: testbed.far)
        let paths = [try path(), try path { $0.interface = "near1" }]
        // If there is no route, IPv4 sends the packets of a bound socket to the destination on the link. So the rule
        // selects a gateway that does not exist.
        try testbed.near.ip("route add default via 203.0.113.99 dev near1 table 77")
        try testbed.near.ip("rule add \(rule) lookup 77 priority 80")
        let probe = TCPProbe(port: server.port, timeout: .seconds(60), loop: loop)
        #expect(await probe.run(to: nil, over: paths[0]).validation == .valid)
        #expect(await probe.run(to: nil, over: paths[1]).validation == .failed("no route to host"))
    }

    @Test func `a removed source address is named in the result`() async throws {
        let path = try path { $0.source = testbed.second.source }
        try testbed.near.ip("addr del 203.0.113.1/24 dev near1")
        let result = await TCPProbe(port: 9, timeout: .seconds(60), loop: loop).run(to: nil, over: path)
        #expect(result.validation == .failed("the source address no longer exists"))
        #expect(result.latency == nil)
    }

    @Test func `an interface that is down or removed is named in the result`() async throws {
        let path = try path { $0.interface = "near1" }
        let probe = TCPProbe(port: 9, timeout: .seconds(60), loop: loop)
        try testbed.near.ip("link set near1 down")
        let down = await probe.run(to: nil, over: path)
        #expect(down.validation == .failed("network is unreachable"))
        try testbed.near.ip("addr add \(testbed.second.source)/32 dev lo", "link del near1")
        let gone = await probe.run(to: nil, over: path)
        #expect(gone.validation == .failed("the interface no longer exists"))
    }

    @Test(arguments: [(VethTestbed.farIPv6Address, "2001:db8::1"), ("fe80::2", "fe80::1")])
    func `IPv6 and link-local paths are probed`(address: String, source: String) async throws {
        try testbed.near.ip("-6 addr add fe80::1/64 dev near0 nodad")
        try testbed.far.ip("-6 addr add fe80::2/64 dev far0 nodad")
        let isLinkLocal = address.hasPrefix("fe80")
        let host = isLinkLocal ? "\(address)%\(testbed.first.index)" : address
        let far0 = testbed.far.run { if_nametoindex("far0") }
        let server = try ScriptedServer(
            address: isLinkLocal ? "\(address)%\(far0)" : address,
            in: testbed.far
        )
        let (statuses, watch) = monitor.record(try target(host))
        try await statuses.waitForLast(\.isReachable)
        let path = try #require(watch.status.path)
        let probe = TCPProbe(port: server.port, timeout: .seconds(60), loop: loop)
        #expect(await probe.run(to: nil, over: path).validation == .valid)
        let peer = try #require(await server.peers(atLeast: 1)[0])
        #expect(IPAddress(bytes: peer.bytes) == IPAddress(source))
    }
}
