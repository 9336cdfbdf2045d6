internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetworkReachability

@Suite(.timeLimit(.minutes(5))) struct PathValidatorTests {
    private let localhost = PathTarget.host(NetworkHost("127.0.0.1")!)
    private let probe = ManualProbe()
    private let seen = Recorder<ValidatedStatus>()

    private func validator(interval: Duration? = nil, by other: (any Probe)? = nil) -> PathValidator {
        PathValidator(target: localhost, probe: other ?? probe, interval: interval) { [seen] in
            seen.record($0)
        }
    }

    @Test func `the status is delivered immediately and the result later`() async throws {
        let validator = validator()
        defer { validator.cancel() }
        try await probe.events.wait { $0.count == 1 }
        #expect(seen.values.map(\.validation) == [.none])
        probe.answer(.valid)
        try await seen.wait { $0.count == 2 }
        #expect(seen.values.map(\.validation) == [.none, .valid])
        #expect(Set(seen.values.map(\.status)).count == 1)
    }

    @Test func `a failed probe does not change the status`() async throws {
        let port = try RefusingPort()
        let validator = validator(by: TCPProbe(port: port.port, timeout: .seconds(60)))
        try await seen.wait { $0.count == 2 }
        validator.cancel()
        let last = try #require(seen.values.last)
        #expect(last.validation == .failed("connection refused"))
        #expect(last.status.isReachable)
        #expect(last.status == seen.values.first?.status)
    }

    @Test(.needsNetworkNamespaces)
    func `a host is not reachable if a rule prohibits the port of the probe`() async throws {
        let testbed = try VethTestbed()
        try testbed.near.ip("rule add ipproto tcp dport 8080 prohibit")
        let monitor = PathMonitor(configuration: .init(in: testbed.near))
        let target = PathTarget.host(NetworkHost(VethTestbed.remoteAddress)!)
        let validator = PathValidator(monitor: monitor, target: target, probe: TCPProbe(port: 8080)) {
            [seen] in
            seen.record($0)
        }
        defer { validator.cancel() }
        try await seen.waitForLast { $0.status.reason == .prohibited }
        #expect(seen.values.count == 1)
    }

    @Test func `the path is probed again after the interval`() async throws {
        let server = try ScriptedServer()
        let probe = TCPProbe(port: server.port, timeout: .seconds(60))
        let validator = validator(interval: .seconds(1), by: probe)
        try await seen.wait { $0.count == 3 }
        validator.cancel()
        // A further result may have arrived before the cancellation.
        #expect(seen.values.prefix(3).map(\.validation) == [.none, .valid, .valid])
        #expect(await server.peers(atLeast: 2).count >= 2)
    }

    @Test func `a check starts a probe unless one is running`() async throws {
        let validator = validator()
        defer { validator.cancel() }
        try await probe.events.wait { $0.count == 1 }
        for _ in 0..<10 { validator.check() }
        probe.answer(.valid)
        try await seen.wait { $0.count == 2 }
        #expect(probe.starts.count == 1)
        for _ in 0..<10 { validator.check() }
        try await probe.events.wait { $0.count == 2 }
        probe.answer(.failed("no answer"))
        try await seen.wait { $0.count == 3 }
        #expect(probe.starts.count == 2)
        #expect(seen.values.last?.validation == .failed("no answer"))
    }

    @Test func `cancelling a validator cancels its probe`() async throws {
        defer { probe.answer(.valid) }
        let validator = validator(interval: .seconds(1))
        try await probe.events.wait { $0.count == 1 }
        validator.cancel()
        try await probe.events.wait { $0.last == .cancelled }
    }

    @Test func `no update is delivered after cancellation`() throws {
        let loop = try ProbeLoop().get()
        let core = ValidationCore(loop: loop, target: localhost, probe: probe, interval: nil) { [seen] in
            seen.record($0)
        }
        core.stop()
        core.take(PathMonitor.shared.watch(localhost) { _ in }.status)
        loop.runAndWait {}
        #expect(seen.values.isEmpty)
    }

    @Test func `releasing a validator cancels it`() async throws {
        defer { probe.answer(.valid) }
        var held: PathValidator? = validator(interval: .seconds(1))
        try await probe.events.wait { $0.count == 1 }
        #expect(held != nil)
        held = nil
        try await probe.events.wait { $0.last == .cancelled }
    }

    @Test func `a stream begins with the current status, and probing ends with it`() async throws {
        defer { probe.answer(.valid) }
        let stream = PathMonitor.shared.validatedStatuses(of: localhost, by: probe)
        let reader = Task {
            for await status in stream { seen.record(status) }
        }
        try await probe.events.wait { $0.count == 1 }
        try await seen.wait { $0.count == 1 }
        #expect(seen.values[0].status.isReachable)
        reader.cancel()
        try await probe.events.wait { $0.last == .cancelled }
        await reader.value
    }
}

/// Validators of real paths, which appear and disappear in network namespaces.
@Suite(
    .needsNetworkNamespaces,
    .timeLimit(.minutes(5))
)
struct PathValidatorTransitionTests {
    private let testbed: VethTestbed
    private let monitor: PathMonitor
    private let target = PathTarget.host(NetworkHost(VethTestbed.remoteAddress)!)
    private let seen = Recorder<ValidatedStatus>()

    init() throws {
        testbed = try VethTestbed()
        monitor = PathMonitor(configuration: .init(in: testbed.near))
    }

    private func validator(_ probe: any Probe) -> PathValidator {
        PathValidator(monitor: monitor, target: target, probe: probe, interval: nil) { [seen] in
            seen.record($0)
        }
    }

    @Test func `a path is probed again after its cable was unplugged and plugged in`() async throws {
        try testbed.far.ip("addr add \(VethTestbed.remoteAddress)/32 dev lo")
        let server = try ScriptedServer(address: VethTestbed.remoteAddress, in: testbed.far)
        let loop = ProbeLoop(networkNamespace: testbed.near.path)
        let validator = validator(TCPProbe(port: server.port, timeout: .seconds(60), loop: loop))
        defer { validator.cancel() }
        try await seen.waitForLast { $0.validation == .valid }
        try testbed.setCable(connected: false)
        try await seen.waitForLast { $0.status.reason == .noCarrier }
        #expect(seen.values.last?.probe == nil)
        try testbed.setCable(connected: true)
        try await seen.waitForLast { $0.validation == .valid }
        #expect(seen.values.last?.status.isReachable == true)
    }

    @Test func `a probe over a changed path is cancelled and its result dropped`() async throws {
        let probe = ManualProbe()
        let validator = validator(probe)
        defer { validator.cancel() }
        try await probe.events.wait { $0.count == 1 }
        try testbed.near.ip("route replace default via 192.0.2.3")
        try await probe.events.wait { $0.last == .cancelled }
        probe.answer(.captive(CaptivePortal()))
        try await probe.events.wait { $0.count == 3 }
        #expect(probe.starts.last?.gateway == IPAddress("192.0.2.3"))
        probe.answer(.valid)
        try await seen.waitForLast { $0.validation == .valid }
        #expect(seen.values.map(\.validation) == [.none, .none, .valid])
    }

    @Test func `the statuses equal those of a watch regardless of the probe`() async throws {
        let (statuses, watch) = monitor.record(target)
        let validator = validator(TCPProbe(port: 9, loop: ProbeLoop(networkNamespace: testbed.near.path)))
        defer {
            watch.cancel()
            validator.cancel()
        }
        try await seen.wait { $0.contains { $0.probe != nil } }
        for isConnected in [false, true, false] {
            try testbed.setCable(connected: isConnected)
            try await seen.waitForLast { $0.status.isReachable == isConnected }
        }
        try await statuses.waitForLast { !$0.isReachable }
        let passedOn = seen.values.map(\.status).reduce(into: [PathStatus]()) { passedOn, status in
            if passedOn.last != status { passedOn.append(status) }
        }
        #expect(passedOn == statuses.values)
    }
}
