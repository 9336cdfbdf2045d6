internal import CNetwatchTestSupport
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

@Suite struct PathMonitorTests {
    private let localhost = PathTarget.host(NetworkHost("127.0.0.1")!)

    @Test(.needsNetworkNamespaces)
    func `without netlink a host is reachable if connect finds a path, and otherwise unknown`() async throws {
        let testbed = try VethTestbed()
        try testbed.near.ip("route del default")
        var configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.reconnectInterval = .milliseconds(20)
        let monitor = try await Self.sandboxed { [configuration] in PathMonitor(configuration: configuration)
        }
        let (_, near) = monitor.record(VethTestbed.farAddress)
        let (statuses, remote) = monitor.record(VethTestbed.remoteAddress)
        #expect(near.status.path?.source == IPAddress(VethTestbed.nearAddress))
        #expect(remote.status.verdict == .unknown(.noNetlink))
        #expect(monitor.failure?.description == "netlink socket: Operation not permitted")
        #expect(!NetworkReachabilityManager(target: remote.target, monitor: monitor).startListening())
        // Without netlink the monitor repeats the lookup at the reconnect interval.
        try testbed.addDefaultRoutes()
        try await statuses.waitForLast(\.isReachable)
        try testbed.near.ip("route del default")
        try await statuses.waitForLast { $0.verdict == .unknown(.noNetlink) }
    }

    /// Runs the closure on a thread that may not open netlink sockets. Nor may the threads that the closure starts.
    private static func sandboxed<Value: Sendable>(
        _ body: @escaping @Sendable () -> Value
    ) async throws -> Value {
        let values = Recorder<Value>()
        try startDetachedThread(named: "sandbox") {
            if netwatch_deny_netlink() == 0 { values.record(body()) }
        }
        try await values.wait { !$0.isEmpty }
        return values.values[0]
    }

    @Test func `a namespace that cannot be entered makes every status unknown`() {
        var configuration = PathMonitor.Configuration()
        configuration.networkNamespace = "/no/such/namespace"
        let monitor = PathMonitor(configuration: configuration)
        #expect(monitor.watch(localhost) { _ in }.status.verdict == .unknown(.noNetlink))
        #expect(monitor.failure?.description.contains("/no/such/namespace") == true)
    }

    @Test(
        arguments: [
            ("a length beyond the datagram", [200, 0, 0, 0, 24, 0, 0, 0] + [UInt8](repeating: 0, count: 8)),
            ("a length below the header", [4, 0, 0, 0, 24, 0, 0, 0] + [UInt8](repeating: 0, count: 8)),
            ("a header cut short", [16, 0, 0]),
            (
                "a route message without a route",
                [16, 0, 0, 0, 24, 0, 0, 0] + [UInt8](repeating: 0, count: 8)
            ),
        ] as [(String, [UInt8])]
    )
    func `a malformed message is counted, and everything is looked up again`(what: String, bytes: [UInt8])
        async throws
    {
        let monitor = PathMonitor()
        let watch = monitor.watch(localhost) { _ in }
        #expect(watch.status.isReachable)
        let before = monitor.statistics
        monitor.ingest(bytes)
        let after = monitor.statistics
        #expect(after.malformed == before.malformed + 1)
        #expect(watch.status.isReachable)
        #expect(after.recomputations > before.recomputations)
    }

    @Test func `a callback may call the monitor`() async throws {
        let monitor = PathMonitor()
        let answers = Recorder<Bool>()
        let watch = monitor.watch(localhost) { _ in
            let other = monitor.watch(.host(NetworkHost("127.0.0.2")!)) { _ in }
            answers.record(other.status.isReachable)
        }
        try await answers.wait { $0 == [true] }
        watch.cancel()
    }

    @Test func `a stream begins with the current status`() async throws {
        let monitor = PathMonitor()
        var iterator = monitor.statuses(of: localhost).makeAsyncIterator()
        #expect(await iterator.next()?.isReachable == true)
    }
}
