internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetworkReachability

/// Watched names in a real network namespace, with a fake name server.
@Suite(.needsNetworkNamespaces)
struct WatchedNameTests {
    /// A fake name server whose answers the test changes.
    private final class Answers: Sendable {
        private let current: Lock<NameResolver.Outcome>
        let lookups = Recorder<String>()

        init(_ outcome: NameResolver.Outcome) { current = Lock(outcome) }

        func set(_ outcome: NameResolver.Outcome) { current.withLock { $0 = outcome } }

        var resolver: NameResolver {
            NameResolver { name in
                let outcome = self.current.withLock { $0 }
                self.lookups.record(name)
                return outcome
            }
        }
    }

    private let noSuchName = NameResolver.Outcome.failure(.init(code: -2))
    private let noAnswer = NameResolver.Outcome.failure(.init(code: -3))

    private func watch(
        _ answers: Answers,
        in testbed: VethTestbed,
        clock: MonitorClock = .system
    ) throws -> (Recorder<PathStatus>, PathWatch, PathMonitor) {
        var configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.clock = clock
        let monitor = PathMonitor(configuration: configuration, resolver: answers.resolver)
        let recorder = Recorder<PathStatus>()
        let host = try #require(NetworkHost("server.example"))
        return (recorder, monitor.watch(.host(host)) { recorder.record($0) }, monitor)
    }

    @Test
    func `a name is reachable if an address is, and keeps its addresses while the name server is silent`()
        async throws
    {
        let testbed = try VethTestbed()
        let answers = Answers(.success([IPAddress(VethTestbed.farAddress)!]))
        let (statuses, watch, _) = try watch(answers, in: testbed)
        try await statuses.waitForLast { $0.isReachable }
        answers.set(noAnswer)
        try testbed.near.ip("link set near0 down")
        try await statuses.waitForLast { $0.reason == .noRoute }
        try await answers.lookups.wait { $0.count >= 2 }
        try testbed.near.ip("link set near0 up")
        try await statuses.waitForLast { $0.isReachable }
        watch.cancel()
    }

    @Test func `a name is looked up again after a change of the network`() async throws {
        let testbed = try VethTestbed()
        let answers = Answers(.success([IPAddress("203.0.113.9")!]))
        try testbed.near.ip("route add blackhole 203.0.113.9")
        let (statuses, watch, _) = try watch(answers, in: testbed)
        try await statuses.waitForLast { $0.reason == .blackhole }
        answers.set(.success([IPAddress(VethTestbed.farAddress)!]))
        try testbed.near.ip("addr add 192.0.2.77/24 dev near0")
        try await statuses.waitForLast { $0.isReachable }
        watch.cancel()
    }

    @Test func `a name that was never resolved is unknown, or not reachable if the network is down`()
        async throws
    {
        let testbed = try VethTestbed()
        let (statuses, watch, _) = try watch(Answers(noSuchName), in: testbed)
        try await statuses.waitForLast { $0.verdict == .unknown(.unresolved) }
        try testbed.near.ip("link set near0 down")
        try await statuses.waitForLast { $0.verdict == .notReachable(.noRoute) }
        watch.cancel()
    }

    @Test func `a name that was never resolved is not reachable with a self-assigned IPv4 address only`()
        async throws
    {
        let testbed = try VethTestbed()
        let (statuses, watch, _) = try watch(Answers(noAnswer), in: testbed)
        try await statuses.waitForLast { $0.verdict == .unknown(.unresolved) }
        try testbed.near.ip(
            "-6 route del default",
            "addr flush dev near0",
            "addr add 169.254.7.7/16 scope link dev near0",
            "route add default dev near0 scope link metric 1002"
        )
        try await statuses.waitForLast { $0.verdict == .notReachable(.noSource) }
        watch.cancel()
    }

    @Test func `a name that was never resolved is unknown on a network without a default route`() async throws
    {
        let testbed = try VethTestbed()
        try testbed.near.ip("route del default", "-6 route del default")
        let (statuses, watch, _) = try watch(Answers(noAnswer), in: testbed)
        try await statuses.waitForLast { $0.verdict == .unknown(.unresolved) }
        try testbed.near.ip("link set near0 down")
        try await statuses.waitForLast { $0.verdict == .notReachable(.noRoute) }
        try testbed.near.ip("link set near0 up")
        try await statuses.waitForLast { $0.verdict == .unknown(.unresolved) }
        watch.cancel()
    }

    @Test func `a new watch begins with the addresses that the resolver knows while name servers are silent`()
        async throws
    {
        let testbed = try VethTestbed()
        try testbed.near.ip("route del default", "-6 route del default")
        let silence = Gate()
        defer { silence.open() }
        let isSilent = Lock(false)
        let resolver = NameResolver { _ in
            if isSilent.withLock({ $0 }) { silence.wait() }
            return .success([IPAddress(VethTestbed.farAddress)!])
        }
        await withCheckedContinuation { done in resolver.resolve("Server.example") { _ in done.resume() } }
        isSilent.withLock { $0 = true }
        let monitor = PathMonitor(configuration: .init(in: testbed.near), resolver: resolver)
        let (statuses, watch) = monitor.record("server.example")
        try await statuses.wait { !$0.isEmpty }
        #expect(statuses.values[0].isReachable)
        withExtendedLifetime(watch) {}
    }

    /// The first lookup fails, and the next one is not due, because the clock stands still.
    @Test(arguments: [true, false])
    func `a further watch of a name without addresses looks the name up, unless the resolver knows them`(
        isKnown: Bool
    ) async throws {
        let testbed = try VethTestbed()
        let answers = Answers(noSuchName)
        let resolver = answers.resolver
        var configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.clock = TestClock().monitorClock
        let monitor = PathMonitor(configuration: configuration, resolver: resolver)
        let (plain, watch) = monitor.record("server.example")
        try await plain.waitForLast { $0.verdict == .unknown(.unresolved) }
        answers.set(.success([IPAddress(VethTestbed.farAddress)!]))
        if isKnown {
            // Other users of the process's resolver have found the addresses. Now the name servers are silent.
            await withCheckedContinuation { done in
                resolver.resolve("server.example", urgency: .refresh) { _ in done.resume() }
            }
            answers.set(noAnswer)
        }
        var options = PathOptions()
        options.port = 8080
        let special = Recorder<PathStatus>()
        let host = try #require(NetworkHost("server.example"))
        let specialWatch = monitor.watch(.host(host), options: options) { special.record($0) }
        try await special.waitForLast(\.isReachable)
        try await plain.waitForLast(\.isReachable)
        if isKnown { #expect(special.values.count == 1) }
        withExtendedLifetime((watch, specialWatch)) {}
    }

    @Test func `one lookup now covers as many addresses as a client tries`() async throws {
        let testbed = try VethTestbed()
        try testbed.near.ip("route add blackhole 203.0.113.0/24")
        let monitor = PathMonitor(configuration: .init(in: testbed.near))
        let addresses =
            (1..<ResolverTimes.maximumAddresses).map { "203.0.113.\($0)" } + [VethTestbed.farAddress]
        let verdict = await withCheckedContinuation { answered in
            monitor.lookUp(addresses.map { IPAddress($0)! }) { answered.resume(returning: $0) }
        }
        #expect(verdict.isReachable)
    }

    @Test func `watches of a name with several ports share its lookups`() async throws {
        let testbed = try VethTestbed()
        try testbed.near.ip("route add blackhole 203.0.113.9", "rule add ipproto tcp dport 8080 prohibit")
        let clock = TestClock()
        let answers = Answers(.success([IPAddress(VethTestbed.farAddress)!]))
        let (plain, watch, monitor) = try watch(answers, in: testbed, clock: clock.monitorClock)
        try await plain.waitForLast { $0.isReachable }
        let first = answers.lookups.values.count
        var options = PathOptions()
        options.port = 8080
        let special = Recorder<PathStatus>()
        let host = try #require(NetworkHost("server.example"))
        let specialWatch = monitor.watch(.host(host), options: options) { special.record($0) }
        try await special.wait { !$0.isEmpty }
        #expect(special.values.map(\.reason) == [.prohibited])
        #expect(answers.lookups.values.count == first)
        try testbed.near.ip("rule del ipproto tcp dport 8080 prohibit")
        monitor.catchUp()
        try await special.waitForLast { $0.isReachable }
        // The lookups go on for the other watch when one ends.
        watch.cancel()
        answers.set(.success([IPAddress("203.0.113.9")!]))
        let before = answers.lookups.values.count
        try await advance(clock, of: monitor, until: answers.lookups, has: before + 3)
        clock.advance(by: .seconds(1))
        try await special.waitForLast { $0.reason == .blackhole }
        specialWatch.cancel()
    }

    @Test func `a status follows the addresses of a name, but not their order`() async throws {
        let testbed = try VethTestbed()
        try testbed.near.ip("route add blackhole 203.0.113.9")
        let clock = TestClock()
        let both = [VethTestbed.farAddress, VethTestbed.remoteAddress].map { IPAddress($0)! }
        let answers = Answers(.success(both))
        let (statuses, watch, monitor) = try watch(answers, in: testbed, clock: clock.monitorClock)
        try await statuses.waitForLast { $0.isReachable }
        let first = watch.status
        answers.set(.success(both.reversed()))
        try await advance(clock, of: monitor, until: answers.lookups, has: 2)
        // The third lookup proves that the monitor has received the second answer. So the getter below comes after it.
        try await advance(clock, of: monitor, until: answers.lookups, has: 3)
        #expect(statuses.values.count == 1 && watch.status == first)
        answers.set(.success([IPAddress("203.0.113.9")!]))
        try await advance(clock, of: monitor, until: answers.lookups, has: 5)
        clock.advance(by: .seconds(1))
        try await statuses.waitForLast { $0.reason == .blackhole }
        watch.cancel()
    }

    @Test func `a name that no longer exists does not stay reachable`() async throws {
        let testbed = try VethTestbed()
        let clock = TestClock()
        let answers = Answers(.success([IPAddress(VethTestbed.farAddress)!]))
        let (statuses, watch, monitor) = try watch(answers, in: testbed, clock: clock.monitorClock)
        try await statuses.waitForLast { $0.isReachable }
        answers.set(noSuchName)
        try await advance(clock, of: monitor, until: answers.lookups, has: 4)
        clock.advance(by: .seconds(1))
        try await statuses.waitForLast { $0.verdict == .unknown(.unresolved) }
        watch.cancel()
    }

    @Test func `names are looked up again when the resolver's files change`() async throws {
        let testbed = try VethTestbed()
        let directory = try ScratchDirectory()
        var configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.disablePeriodicLookups()
        configuration.resolverFiles = [directory.file("resolv.conf")]
        let lookups = Recorder<String>()
        let resolver = NameResolver(lookUp: { name in
            lookups.record(name)
            return .success([IPAddress(lookups.values.count == 1 ? "203.0.113.1" : "203.0.113.2")!])
        })
        let monitor = PathMonitor(configuration: configuration, resolver: resolver)
        let (statuses, watch) = monitor.record("name.example")
        try await statuses.waitForLast { $0.path?.destination == IPAddress("203.0.113.1") }
        try shell(
            "echo nameserver 192.0.2.2 > \(directory.file("new")) && mv \(directory.file("new")) \(directory.file("resolv.conf"))"
        )
        try await statuses.waitForLast { $0.path?.destination == IPAddress("203.0.113.2") }
        withExtendedLifetime(watch) {}
    }

    @Test func `rotated answers do not cause further lookups`() async throws {
        let testbed = try VethTestbed()
        try testbed.near.ip(
            "link add side0 type veth peer name side1",
            "link set side1 up",
            "link set side0 up",
            "addr add 203.0.113.1/24 dev side0"
        )
        let lookups = Recorder<Int>()
        let resolver = NameResolver(lookUp: { _ in
            let count = lookups.values.count
            lookups.record(count)
            let addresses = ["192.0.2.9", "203.0.113.9"].map { IPAddress($0)! }
            return .success(count.isMultiple(of: 2) ? addresses : addresses.reversed())
        })
        let monitor = PathMonitor(configuration: .init(in: testbed.near), resolver: resolver)
        let (statuses, watch) = monitor.record("rotating.example")
        try await statuses.waitForLast(\.isReachable)
        for number in 1...5 {
            let before = lookups.values.count
            try testbed.near.ip("addr add 192.0.2.\(100 + number)/32 dev near0")
            try await lookups.wait { $0.count > before }
            _ = monitor.statistics
        }
        // Each of the five changes causes one lookup for each of its notifications. The limit allows three.
        #expect(lookups.values.count <= 1 + 3 * 5)
        #expect(Set(statuses.values.compactMap(\.path?.destination)).count == 1)
        withExtendedLifetime(watch) {}
    }

    @Test func `three thousand new names cause few lookups, and each name gets a status`() throws {
        let testbed = try VethTestbed()
        let answers = Answers(.success([IPAddress(VethTestbed.farAddress)!]))
        let clock = TestClock()
        var configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.clock = clock.monitorClock
        let monitor = PathMonitor(configuration: configuration, resolver: answers.resolver)
        let watches = (0..<3000).map { number in
            monitor.watch(.host(NetworkHost("host\(number).example")!)) { _ in }
        }
        let burst = LookupTurns.firstBurst + LookupTurns.burst
        #expect(monitor.statistics.nameLookups <= burst)
        clock.advance(by: .seconds(10))
        // Six per second, and one more first lookup every 2 s.
        #expect(monitor.statistics.nameLookups <= burst + 60 + 5)
        #expect(!watches.contains { $0.status.verdict == .unknown(.resolving) })
    }

    /// Advances the time of a monitor in steps of 1 s until `count` lookups have been made. Waits after each step for the
    /// lookups that have begun, which run on other threads.
    private func advance(
        _ clock: TestClock,
        of monitor: PathMonitor,
        until lookups: Recorder<String>,
        has count: Int
    ) async throws {
        while lookups.values.count < count {
            clock.advance(by: .seconds(1))
            let begun = monitor.statistics.nameLookups
            try await lookups.wait { $0.count >= begun }
        }
    }
}
