internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

/// An address that a new monitor watches in a testbed, with all statuses that the watch has received.
struct WatchedHost {
    let testbed: VethTestbed
    let monitor: PathMonitor
    let address: IPAddress
    private let port: UInt16?
    let recorder = Recorder<PathStatus>()
    let watch: PathWatch

    init(
        _ address: String,
        in testbed: VethTestbed,
        options: PathOptions = PathOptions(),
        settle: Duration = .milliseconds(30),
        confirmDelay: Duration = .milliseconds(150),
        isFiltered: Bool = FilterTrait.isFiltered,
        ignoresLifetimes: Bool = false
    ) throws {
        self.testbed = testbed
        self.address = try #require(IPAddress(address))
        port = options.port
        var configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.settle = settle
        configuration.confirmDelay = confirmDelay
        configuration.filtersRoutes = isFiltered
        configuration.faults.ignoresLifetimes = ignoresLifetimes
        monitor = PathMonitor(configuration: configuration)
        let recorder = recorder
        watch = monitor.watch(.host(try #require(NetworkHost(address))), options: options) {
            recorder.record($0)
        }
        if isFiltered { monitor.narrowFilter() }
    }

    /// Waits until the last status is reachable, or not reachable for `false`, and compares it with the oracle.
    func becomes(reachable: Bool, _ location: SourceLocation = #_sourceLocation) async throws {
        try await recorder.waitForLast { $0.isReachable == reachable }
        checkOracle(location)
    }

    /// Waits until the last status has this reason, and compares it with the oracle.
    func becomes(_ reason: PathStatus.Reason, _ location: SourceLocation = #_sourceLocation) async throws {
        try await recorder.waitForLast { $0.reason == reason }
        checkOracle(location)
    }

    /// Compares the last status with ``SocketOracle``. Accepts reasons that `connect(2)` does not notice, such as a
    /// lost carrier.
    private func checkOracle(_ location: SourceLocation) {
        guard let status = recorder.values.last else { return }
        let answer = SocketOracle(namespace: testbed.near, port: port ?? 9).ask(about: address)
        switch (status.verdict, answer) {
        case (.reachable(let path), .sends(let source)):
            #expect(path.source?.bytes == source.bytes, sourceLocation: location)
        case (.notReachable(.noCarrier), _), (.notReachable(.noSource), _), (.notReachable(.loopbackDown), _):
            break
        case (.notReachable, .refuses):
            break
        default:
            Issue.record("the status is `\(status)`, but connect(2) \(answer)", sourceLocation: location)
        }
    }

    /// Whether the host was reachable, without consecutive duplicates. A change of the reason alone does not count,
    /// because a link that comes up has no carrier at first.
    var transitions: [Bool] {
        recorder.values.map(\.isReachable).reduce(into: []) { transitions, isReachable in
            if transitions.last != isReachable { transitions.append(isReachable) }
        }
    }

    /// Whether each status differs from the previous one.
    var neverRepeats: Bool {
        zip(recorder.values, recorder.values.dropFirst()).allSatisfy { $0 != $1 }
    }
}
