internal import Dispatch
internal import NetwatchEventLoop
internal import NetwatchNetlink
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetworkReachability

/// Callbacks that call the monitor. The tests watch more hosts than the monitor looks up in one turn.
@Suite(.needsNetworkNamespaces)
struct ReentrancyTests {
    private let testbed: VethTestbed
    private let monitor: PathMonitor
    private let targets = (0..<400).map {
        PathTarget.host(NetworkHost("198.51.\(100 + $0 / 200).\($0 % 200)")!)
    }

    init() throws {
        testbed = try VethTestbed()
        var configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.settle = .zero
        // The monitor receives no notifications. So it finds a change only by looking up everything, in several turns.
        configuration.faults.interceptor = { received in
            var batch = received
            batch.events = []
            return batch
        }
        monitor = PathMonitor(configuration: configuration)
    }

    @Test func `a status that one callback causes does not overtake earlier statuses of other watches`()
        async throws
    {
        let extra = Lock<[PathWatch]>([])
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
        withExtendedLifetime(watches) {}
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
        let own = Lock<PathWatch?>(nil)
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
