internal import NetwatchEventLoop
internal import NetwatchNetlink
internal import NetwatchTestSupport
internal import NetworkReachability
internal import Testing

/// Monitors that lose kernel notifications.
@Suite(.needsNetworkNamespaces)
struct LostAnnouncementTests {
    /// Commands that make the remote host unreachable. The kernel notifies of each in a different way.
    static let changes = [
        "link set near0 down",
        "addr del 192.0.2.1/24 dev near0",
        "route del default",
        "route add blackhole 198.51.100.7",
        "rule add to 198.51.100.7 prohibit",
        "nexthop del id 7",
    ]

    @Test(arguments: changes)
    func `a change without notification is detected one confirm delay after the next event`(change: String)
        throws
    {
        let host = try LossyHost()
        host.deliver(.unrelated)
        try host.make(change)
        #expect(host.watch.status.isReachable)
        try host.make(LossyHost.unrelatedChange)
        host.clock.advance(by: .milliseconds(149))
        #expect(host.watch.status.isReachable)
        host.clock.advance(by: .milliseconds(1))
        #expect(!host.watch.status.isReachable)
    }

    @Test func `each further event postpones the confirmation`() throws {
        let host = try LossyHost()
        host.deliver(.unrelated)
        try host.make("route add blackhole 198.51.100.7")
        try host.make(LossyHost.unrelatedChange)
        host.clock.advance(by: .milliseconds(100))
        try host.make("route del blackhole 203.0.113.0/24")
        host.clock.advance(by: .milliseconds(149))
        #expect(host.watch.status.isReachable)
        host.clock.advance(by: .milliseconds(1))
        #expect(!host.watch.status.isReachable)
    }

    @Test(arguments: changes)
    func `a change without notification is detected by the next audit`(change: String) throws {
        let host = try LossyHost()
        host.deliver(.nothing)
        try host.make(change)
        // An audit runs every 60 s. The last one was at most 1 s ago.
        host.clock.advance(by: .milliseconds(58_999))
        #expect(host.watch.status.isReachable)
        host.clock.advance(by: .milliseconds(1001))
        #expect(!host.watch.status.isReachable)
    }

    @Test(arguments: changes)
    func `a change is detected if any single notification of it is lost`(change: String) throws {
        var index = 0
        var wasLost = true
        while wasLost {
            let host = try LossyHost(losing: index)
            try host.make(change)
            try host.make("link set lo mtu 60000")
            host.clock.advance(by: .milliseconds(150))
            #expect(!host.watch.status.isReachable, "without notification \(index)")
            wasLost = host.hasLost
            index += 1
        }
        #expect(index > 1)
    }

    @Test func `a notification takes effect immediately`() throws {
        let host = try LossyHost()
        try host.make("route add blackhole 198.51.100.7")
        #expect(!host.watch.status.isReachable)
    }
}

/// A remote host whose route uses a next hop object, and a monitor that watches it with a test clock. The monitor loses
/// the notifications that the test selects.
private struct LossyHost {
    enum Delivery {
        case everything, nothing
        /// Only those of the route in ``unrelatedChange``.
        case unrelated
    }

    fileprivate struct Losses {
        var delivery = Delivery.everything
        /// The number of notifications to receive before one is lost; `nil` if none is lost, or after the loss.
        var losing: Int?
        var hasLost = false
    }

    /// A change that does not concern the host.
    static let unrelatedChange = "route add blackhole 203.0.113.0/24"
    fileprivate static let unrelatedPrefix = IPPrefix(IPAddress("203.0.113.0")!, length: 24)

    let clock = TestClock()
    let watch: PathWatch
    private let testbed: VethTestbed
    private let monitor: PathMonitor
    private let losses: SharedValue<Losses>

    init(losing: Int? = nil) throws {
        testbed = try VethTestbed()
        try testbed.near.ip(
            "route del default",
            "nexthop add id 7 via \(VethTestbed.farAddress) dev near0",
            "route add default nhid 7"
        )
        losses = SharedValue(Losses())
        var configuration = PathMonitor.Configuration(in: testbed.near)
        configuration.settle = .zero
        configuration.clock = clock.monitorClock
        configuration.filtersRoutes = false
        configuration.faults.interceptor = { [losses] batch in losses.withValue { $0.apply(to: batch) } }
        monitor = PathMonitor(configuration: configuration)
        watch = monitor.watch(.host(try #require(NetworkHost(VethTestbed.remoteAddress)))) { _ in }
        #expect(watch.status.isReachable)
        // Processes the pending notifications of the testbed's setup.
        monitor.catchUp()
        clock.advance(by: .seconds(1))
        losses.withValue { $0.losing = losing }
    }

    var hasLost: Bool { losses.withValue { $0.hasLost } }

    func deliver(_ delivery: Delivery) {
        losses.withValue { $0.delivery = delivery }
    }

    /// Makes a change with `ip`, and waits until the monitor has processed all notifications of it.
    func make(_ change: String) throws {
        try testbed.near.ip(change)
        monitor.catchUp()
    }
}

extension LossyHost.Losses {
    fileprivate mutating func apply(to batch: EventSocket.Batch) -> EventSocket.Batch {
        var batch = batch
        switch delivery {
        case .everything: lose(from: &batch.events)
        case .nothing: batch.events = []
        case .unrelated: batch.events.removeAll { $0 != .route(LossyHost.unrelatedPrefix) }
        }
        return batch
    }

    private mutating func lose(from events: inout [NetlinkEvent]) {
        guard let index = losing else { return }
        losing = index - events.count
        guard events.indices.contains(index) else { return }
        events.remove(at: index)
        hasLost = true
        losing = nil
    }
}

/// A value with a lock, which several owners share.
private final class SharedValue<Value: Sendable>: Sendable {
    private let value: Lock<Value>

    init(_ value: Value) { self.value = Lock(value) }

    func withValue<Result>(_ body: (inout sending Value) -> sending Result) -> sending Result {
        value.withLock(body)
    }
}
