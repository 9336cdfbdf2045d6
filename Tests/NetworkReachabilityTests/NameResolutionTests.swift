internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Synchronization
internal import Testing

@testable internal import NetworkReachability

@Suite struct NameResolutionTests {
    private let start = ContinuousClock.now
    private let failure = NameResolver.Outcome.failure(.init(code: -3))

    private func found(_ address: String) -> NameResolver.Outcome { .success([IPAddress(address)!]) }

    @Test func `one lookup runs at a time, and another follows what was asked meanwhile`() {
        var resolution = NameResolution(name: "a.example", now: start)
        #expect(resolution.begin() == true)
        #expect(resolution.begin() == false)
        #expect(resolution.end(found("192.0.2.1"), now: start) == true)
        #expect(resolution.end(found("192.0.2.2"), now: start) == false)
        #expect(resolution.addresses == [IPAddress("192.0.2.2")!])
    }

    @Test func `an answer is held to the rules for hosts`() {
        var resolution = NameResolution(name: "a.example", now: start)
        _ = resolution.begin()
        let answers = ["0.0.0.0", "fe80::1", "ff02::1", "::ffff:192.0.2.1"].map { IPAddress($0)! }
        _ = resolution.end(.success(answers), now: start)
        #expect(resolution.addresses == [IPAddress("192.0.2.1")!])
        // As a name server that blocks answers.
        _ = resolution.begin()
        _ = resolution.end(found("0.0.0.0"), now: start)
        #expect(resolution.addresses == [IPAddress("192.0.2.1")!])
        #expect(resolution.retryDue != nil)
    }

    @Test func `the same addresses in another order change nothing, but for the family that is preferred`() {
        var resolution = NameResolution(name: "a.example", now: start)
        func answer(_ texts: String...) -> [String] {
            _ = resolution.begin()
            _ = resolution.end(.success(texts.map { IPAddress($0)! }), now: start)
            return resolution.addresses.map(\.description)
        }
        #expect(answer("192.0.2.1", "192.0.2.2", "2001:db8::1") == ["192.0.2.1", "192.0.2.2", "2001:db8::1"])
        #expect(answer("192.0.2.2", "192.0.2.1", "2001:db8::1") == ["192.0.2.1", "192.0.2.2", "2001:db8::1"])
        #expect(answer("2001:db8::1", "192.0.2.2", "192.0.2.1") == ["2001:db8::1", "192.0.2.2", "192.0.2.1"])
    }

    @Test func `a failed lookup keeps the last addresses`() {
        var resolution = NameResolution(name: "a.example", now: start)
        _ = resolution.begin()
        _ = resolution.end(found("192.0.2.1"), now: start)
        _ = resolution.begin()
        _ = resolution.end(failure, now: start)
        #expect(resolution.addresses == [IPAddress("192.0.2.1")!])
    }

    @Test func `failed lookups are repeated at growing intervals up to a minute`() {
        var resolution = NameResolution(name: "a.example", now: start)
        let delays = (0..<9).map { _ in
            _ = resolution.begin()
            _ = resolution.end(failure, now: start)
            return resolution.retryDue.map { start.duration(to: $0) }
        }
        #expect(delays == [1, 2, 4, 8, 16, 32, 60, 60, 60].map { .seconds($0) })
    }

    @Test func `a new path makes the intervals short again`() {
        var resolution = NameResolution(name: "a.example", now: start)
        for _ in 0..<9 {
            _ = resolution.begin()
            _ = resolution.end(failure, now: start)
        }
        _ = resolution.begin(afterPathChange: true)
        _ = resolution.end(failure, now: start)
        #expect(resolution.retryDue == start + .seconds(1))
    }

    @Test func `a status waits for the first lookup, but not longer than two seconds`() {
        var resolution = NameResolution(name: "a.example", now: start)
        #expect(resolution.mayHaveStatus(now: start + .milliseconds(1999)) == false)
        #expect(resolution.mayHaveStatus(now: start + .seconds(2)) == true)
        var answered = NameResolution(name: "a.example", now: start)
        _ = answered.begin()
        _ = answered.end(failure, now: start)
        #expect(answered.mayHaveStatus(now: start) == true)
    }
}

/// Names watched in a real namespace, with answers of our own.
@Suite(.enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"))
struct WatchedNameTests {
    /// A name server whose answers a test changes.
    private final class Answers: Sendable {
        private let current: Mutex<NameResolver.Outcome>
        let asked = Recorder<String>()

        init(_ outcome: NameResolver.Outcome) { current = Mutex(outcome) }

        func set(_ outcome: NameResolver.Outcome) { current.withLock { $0 = outcome } }

        var resolver: NameResolver {
            NameResolver { name in
                defer { self.asked.record(name) }
                return self.current.withLock { $0 }
            }
        }
    }

    private let noSuchName = NameResolver.Outcome.failure(.init(code: -2))

    private func watch(
        _ answers: Answers,
        in testbed: VethTestbed
    ) throws -> (Recorder<PathStatus>, PathWatch) {
        var configuration = PathMonitor.Configuration()
        configuration.networkNamespace = testbed.near.path
        let monitor = PathMonitor(configuration: configuration, resolver: answers.resolver)
        let recorder = Recorder<PathStatus>()
        let host = try #require(NetworkHost("server.example"))
        return (recorder, monitor.watch(.host(host)) { recorder.record($0) })
    }

    @Test func `a name is as reachable as its addresses, and keeps them when the name server is gone`()
        async throws
    {
        let testbed = try VethTestbed()
        let answers = Answers(.success([IPAddress(VethTestbed.farAddress)!]))
        let (statuses, watch) = try watch(answers, in: testbed)
        try await statuses.waitForLast { $0.isReachable }
        answers.set(noSuchName)
        try testbed.near.ip("link set near0 down")
        try await statuses.waitForLast { $0.reason == .noRoute }
        try await answers.asked.wait { $0.count >= 2 }
        try testbed.near.ip("link set near0 up")
        try await statuses.waitForLast { $0.isReachable }
        watch.cancel()
    }

    @Test func `a name is resolved again after the path changed`() async throws {
        let testbed = try VethTestbed()
        let answers = Answers(.success([IPAddress("203.0.113.9")!]))
        try testbed.near.ip("route add blackhole 203.0.113.9")
        let (statuses, watch) = try watch(answers, in: testbed)
        try await statuses.waitForLast { $0.reason == .blackhole }
        answers.set(.success([IPAddress(VethTestbed.farAddress)!]))
        try testbed.near.ip("addr add 192.0.2.77/24 dev near0")
        try await statuses.waitForLast { $0.isReachable }
        watch.cancel()
    }

    @Test func `a name that never resolved is unknown while there is a way out, else not reachable`()
        async throws
    {
        let testbed = try VethTestbed()
        let (statuses, watch) = try watch(Answers(noSuchName), in: testbed)
        try await statuses.waitForLast { $0.verdict == .unknown(.unresolved) }
        try testbed.near.ip("link set near0 down")
        try await statuses.waitForLast { $0.verdict == .notReachable(.noRoute) }
        watch.cancel()
    }
}
