internal import CNetwatchTestSupport
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

@Suite struct PathMonitorTests {
    private let localhost = PathTarget.host(NetworkHost("127.0.0.1")!)

    @Test func `without netlink a status is unknown, never not reachable, and the monitor says why`()
        async throws
    {
        let statuses = Recorder<PathStatus>()
        let watches = Recorder<(PathMonitor, PathWatch)>()
        let listens = Recorder<Bool>()
        try startDetachedThread(named: "sandbox") {
            guard netwatch_deny_netlink() == 0 else { return }
            let monitor = PathMonitor()
            let watch = monitor.watch(localhost) { statuses.record($0) }
            listens.record(NetworkReachabilityManager(target: localhost, monitor: monitor).startListening())
            watches.record((monitor, watch))
        }
        try await watches.wait { !$0.isEmpty }
        try await statuses.wait { !$0.isEmpty }
        let (monitor, watch) = watches.values[0]
        #expect(watch.status.verdict == .unknown(.noNetlink))
        #expect(listens.values == [false])
        #expect(monitor.failure?.description == "netlink socket: Operation not permitted")
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
    func `a malformed message is counted and everything looked up again`(what: String, bytes: [UInt8])
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

    @Test func `a callback may ask the monitor`() async throws {
        let monitor = PathMonitor()
        let answers = Recorder<Bool>()
        let watch = monitor.watch(localhost) { _ in
            let other = monitor.watch(.host(NetworkHost("127.0.0.2")!)) { _ in }
            answers.record(other.status.isReachable)
        }
        try await answers.wait { $0 == [true] }
        watch.cancel()
    }

    @Test func `a stream gives the present status first`() async throws {
        let monitor = PathMonitor()
        var iterator = monitor.statuses(of: localhost).makeAsyncIterator()
        #expect(await iterator.next()?.isReachable == true)
    }
}
