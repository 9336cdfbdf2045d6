internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

/// A watched address in a testbed, with all statuses that its watch received.
struct WatchedHost {
    let testbed: VethTestbed
    let monitor: PathMonitor
    let address: IPAddress
    let recorder = Recorder<PathStatus>()
    let watch: PathWatch

    init(
        _ address: String,
        in testbed: VethTestbed,
        options: PathOptions = PathOptions(),
        settle: Duration = .milliseconds(30),
        confirmDelay: Duration = .milliseconds(150),
        isFiltered: Bool = FilterTrait.isFiltered
    ) throws {
        self.testbed = testbed
        self.address = try #require(IPAddress(address))
        var configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.settle = settle
        configuration.confirmDelay = confirmDelay
        configuration.filtersRoutes = isFiltered
        monitor = PathMonitor(configuration: configuration)
        let recorder = recorder
        watch = monitor.watch(.host(try #require(NetworkHost(address))), options: options) {
            recorder.record($0)
        }
        if isFiltered { monitor.narrowFilter() }
    }

    func becomes(reachable: Bool, _ location: SourceLocation = #_sourceLocation) async throws {
        try await recorder.waitForLast { $0.isReachable == reachable }
        checkOracle(location)
    }

    func becomes(_ reason: PathStatus.Reason, _ location: SourceLocation = #_sourceLocation) async throws {
        try await recorder.waitForLast { $0.reason == reason }
        checkOracle(location)
    }

    /// Compares the last status with the oracle, which does not detect a lost carrier or an unusable source.
    private func checkOracle(_ location: SourceLocation) {
        guard let status = recorder.values.last else { return }
        let answer = SocketOracle(namespace: testbed.near).ask(about: address)
        switch (status.verdict, answer) {
        case (.reachable(let path), .sends(let source)):
            #expect(path.source?.bytes == source.bytes, sourceLocation: location)
        case (.notReachable(.noCarrier), _), (.notReachable(.noSource), _), (.notReachable(.loopbackDown), _):
            break
        case (.notReachable, .refuses):
            break
        default:
            Issue.record("status \(status) but the kernel says \(answer)", sourceLocation: location)
        }
    }

    /// The changes of reachability, without changes of the reason alone: a link that comes up first has no carrier.
    var transitions: [Bool] {
        recorder.values.map(\.isReachable).reduce(into: []) { transitions, isReachable in
            if transitions.last != isReachable { transitions.append(isReachable) }
        }
    }

    /// Whether the watch never received the same status twice in a row.
    var neverRepeats: Bool {
        zip(recorder.values, recorder.values.dropFirst()).allSatisfy { $0 != $1 }
    }
}
