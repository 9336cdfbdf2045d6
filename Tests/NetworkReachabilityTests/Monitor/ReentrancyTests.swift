internal import Dispatch
internal import NetwatchEventLoop
internal import NetwatchNetlink
internal import NetwatchTestSupport
internal import Synchronization
internal import Testing

@testable internal import NetworkReachability

/// Subscribers that call the monitor from their callbacks, with more hosts than one turn looks up.
@Suite(.enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"))
struct ReentrancyTests {
    private let testbed: VethTestbed
    private let monitor: PathMonitor
    private let targets = (0..<400).map {
        PathTarget.host(NetworkHost("198.51.\(100 + $0 / 200).\($0 % 200)")!)
    }

    init() throws {
        testbed = try VethTestbed()
        var configuration = PathMonitor.Configuration()
        configuration.networkNamespace = testbed.near.path
        configuration.settle = .zero
        // Drops all events, so that the monitor finds changes only by looking up everything, in several turns.
        configuration.faults.interceptor = { received in
            var batch = received
            batch.events = []
            return batch
        }
        monitor = PathMonitor(configuration: configuration)
    }

    @Test func `a status caused by one callback does not overtake statuses of other subscribers`()
        async throws
    {
        let extra = Mutex<[PathWatch]>([])
        let received = targets.map { _ in (Recorder<PathStatus>(), Recorder<PathStatus>()) }
        let watches = zip(targets, received).map { target, recorders in
            let number = targets.firstIndex(of: target)!
            let first = monitor.watch(target) { [monitor] status in
                recorders.0.record(status)
                let other = PathTarget.host(NetworkHost("203.0.113.\(number % 250 + 1)")!)
                let watch = monitor.watch(other) { _ in }
                extra.withLock { $0.append(watch) }
            }
            return (first, monitor.watch(target) { recorders.1.record($0) })
        }
        #expect(watches.allSatisfy { $0.1.status.isReachable })
        try testbed.near.ip("route del default")
        monitor.revalidate()
        for (first, second) in received {
            try await first.waitForLast { !$0.isReachable }
            try await second.waitForLast { !$0.isReachable }
            #expect(first.values == second.values)
            let generations = second.values.map(\.pathGeneration)
            #expect(generations == generations.sorted())
        }
        extra.withLock { $0 = [] }
    }

    @Test func `a callback may call a manager for the first time`() async throws {
        let manager = NetworkReachabilityManager(target: targets[0], monitor: monitor)
        let answers = Recorder<Bool>()
        let watches = targets.dropFirst().map { target in
            monitor.watch(target) { _ in answers.record(manager.isReachable) }
        }
        try await answers.wait { $0.count >= watches.count }
        #expect(answers.values.allSatisfy { $0 })
    }

    @Test func `a callback may cancel its own watch and release the last reference`() async throws {
        let own = Mutex<PathWatch?>(nil)
        let ended = Recorder<Bool>()
        let watch = monitor.watch(targets[0]) { _ in
            own.withLock { $0 }?.cancel()
            ended.record(true)
        }
        own.withLock { $0 = watch }
        monitor.revalidate()
        try await ended.wait { !$0.isEmpty }
        monitor.revalidate()
        _ = monitor.statistics
        #expect(ended.values.count <= 2)
        own.withLock { $0 = nil }
    }
}

/// Names whose servers rotate the order of the addresses.
@Suite(.enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"))
struct RotatingNameTests {
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
        var configuration = PathMonitor.Configuration()
        configuration.networkNamespace = testbed.near.path
        let monitor = PathMonitor(configuration: configuration, resolver: resolver)
        let statuses = Recorder<PathStatus>()
        let watch = monitor.watch(.host(NetworkHost("rotating.example")!)) { statuses.record($0) }
        try await statuses.waitForLast(\.isReachable)
        for number in 1...5 {
            let before = lookups.values.count
            try testbed.near.ip("addr add 192.0.2.\(100 + number)/32 dev near0")
            try await lookups.wait { $0.count > before }
            _ = monitor.statistics
        }
        // Each network change causes one lookup, or two if it has two announcements.
        #expect(lookups.values.count <= 1 + 3 * 5)
        #expect(Set(statuses.values.compactMap(\.path?.destination)).count == 1)
        withExtendedLifetime(watch) {}
    }
}

/// A large number of general addresses.
@Suite(.enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")"))
struct ManyGeneralAddressesTests {
    @Test func `general addresses may exceed the batch size of lookups`() throws {
        let testbed = try VethTestbed()
        try testbed.near.ip("tuntap add tunnel0 mode tun")
        var configuration = PathMonitor.Configuration()
        configuration.networkNamespace = testbed.near.path
        configuration.generalAddresses = (0..<200).map { IPAddress(bytes: [198, 51, 100, UInt8($0)])! }
        let monitor = PathMonitor(configuration: configuration)
        #expect(monitor.snapshot.interfaces.first { $0.name == "tunnel0" }?.medium == .veth)
        #expect(monitor.snapshot.general.isReachable)
    }
}

@Suite struct ReachabilityStatusesTests {
    private func status(_ isReachable: Bool) -> PathStatus {
        let verdict: PathStatus.Verdict =
            isReachable ? .reachable(.to("198.51.100.7")) : .notReachable(.noRoute)
        return PathStatus(target: .general, finding: Finding(verdict), pathGeneration: 1)
    }

    @Test func `a slow reader does not receive the same status twice`() async {
        let (paths, source) = AsyncStream.makeStream(
            of: PathStatus.self,
            bufferingPolicy: .bufferingNewest(1)
        )
        var iterator = ReachabilityStatuses(paths: paths).makeAsyncIterator()
        source.yield(status(true))
        #expect(await iterator.next() == .reachable(.ethernetOrWiFi))
        // The host became unreachable and reachable again while the reader was idle.
        source.yield(status(false))
        source.yield(status(true))
        source.finish()
        #expect(await iterator.next() == nil)
    }

    @Test func `a suspended queue keeps a limited number of statuses, the newest last`()
        async throws
    {
        let queue = DispatchQueue(label: "slow")
        queue.suspend()
        let received = Recorder<NetworkReachabilityManager.NetworkReachabilityStatus>()
        let session = ListeningSession(queue: queue) { received.record($0) }
        for number in 0..<1000 { session.take(status(number.isMultiple(of: 2))) }
        queue.resume()
        try await received.waitForLast { $0 == .notReachable }
        queue.sync {}
        #expect(received.values.count <= 64)
        #expect(received.values.last == .notReachable)
        #expect(zip(received.values, received.values.dropFirst()).allSatisfy { $0 != $1 })
    }

    @Test func `a local path is probed without an interface binding`() {
        let path = NetworkPath(
            destination: IPAddress("192.0.2.1")!,
            interface: .fake(1),
            gateway: nil,
            source: IPAddress("192.0.2.1"),
            isLocal: true,
            prefixLength: 32,
            table: 255
        )
        #expect(path.binding.interfaceIndex == 0)
        #expect(NetworkPath.to("198.51.100.7").binding.interfaceIndex == 2)
    }
}
