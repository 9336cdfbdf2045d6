internal import Glibc
public import NetwatchEventLoop
internal import NetwatchNetlink
internal import Synchronization

/// Watches the ways to hosts, as the kernel would choose them.
///
/// The kernel's notifications (rtnetlink(7)) say that something may have changed; what is true is then
/// looked up in the kernel's own routing tables, together with the carrier of the interface and the source
/// address. An instance owns one thread and two netlink sockets, needs no privilege, and sends nothing but
/// DNS queries for watched names.
///
/// Statuses of one watch differ from one to the next and are delivered one at a time. The edge to reachable
/// is reported at once; the edge away from it after ``Configuration/settle``.
public final class PathMonitor: Sendable {
    /// How a monitor works. The defaults suit everything but tests.
    public struct Configuration: Sendable {
        /// A path to the network namespace to watch (`/run/netns/NAME`, `/proc/PID/ns/net`). Needs
        /// `CAP_SYS_ADMIN` over that namespace and over the program's own. Default `nil`: the namespace of the
        /// thread that makes the monitor. Name servers are asked from there too, but which
        /// ones they are is read from the process's own files, and zones are looked up in the process's own
        /// namespace. Callbacks, and the threads that are started because of them, stay in the program's namespace.
        public var networkNamespace: String?
        /// How long the edge away from reachable is held back. Default 30 ms, 0 to 250 ms; what lies outside is
        /// moved to the nearer end, here and below.
        public var settle: Duration = .milliseconds(30) {
            didSet { settle = min(max(settle, .zero), .milliseconds(250)) }
        }
        /// How long after the last notification everything is looked up once more, because the kernel
        /// announces some changes before it makes them; while they keep coming, at the latest ten times as
        /// long after the first. Default 150 ms, at least 10 ms.
        public var confirmDelay: Duration = .milliseconds(150) {
            didSet { confirmDelay = max(confirmDelay, .milliseconds(10)) }
        }
        /// How often everything is looked up without any notification. Default 60 s, at least 100 ms.
        public var auditInterval: Duration = .seconds(60) {
            didSet { auditInterval = max(auditInterval, .milliseconds(100)) }
        }
        /// How long after a failure the netlink sockets are opened again, and how often, without them, each
        /// path is looked up by other means. Default 5 s, at least 10 ms.
        public var reconnectInterval: Duration = .seconds(5) {
            didSet { reconnectInterval = max(reconnectInterval, .milliseconds(10)) }
        }
        /// How often the addresses of a watched name are looked up again, give or take 10 %, while nothing else calls
        /// for it. Default 30 s, from 1 s to 1 h. A name whose addresses are out of reach is looked up after 5 s, 5 s,
        /// 10 s, 20 s, and then this often; after a failed lookup the next one follows after 1 s, doubling up to this
        /// interval. A change of the network or of the resolver's configuration calls for a lookup at once.
        ///
        /// A name's status follows its records within twice this interval, unless ``nameLookupsPerSecond`` is too few.
        public var nameRefreshInterval: Duration = .seconds(30) {
            didSet { nameRefreshInterval = min(max(nameRefreshInterval, .seconds(1)), .seconds(3600)) }
        }
        /// How many lookups a second the monitor starts at most in order to renew addresses of watched names, all
        /// together; first lookups are not counted. Default 20, from 1 to 10,000. With more names than this and
        /// ``nameRefreshInterval`` allow, 600 by default, each is looked up less often.
        public var nameLookupsPerSecond = 20 {
            didSet { nameLookupsPerSecond = min(max(nameLookupsPerSecond, 1), 10_000) }
        }
        /// The receive buffer to ask for, in bytes; without `CAP_NET_ADMIN` the kernel grants at most
        /// `net.core.rmem_max`. Default 4 MiB, enough for 5,000 waiting route notifications.
        public var receiveBufferSize = 4 * 1024 * 1024

        /// Whether the kernel is to hold back announcements of routes that cover no watched address, which
        /// spares a wake-up for each. Default `true`. The statuses are the same either way.
        public var filtersRoutes = true
        /// The addresses that decide about ``PathTarget/general``, nothing being sent to them. Default two of
        /// the root name servers (`a` and `k`, IANA root hints), whose addresses are as stable and as widely
        /// routed as any; an empty list means them too.
        public var generalAddresses = rootNameServers {
            didSet { if generalAddresses.isEmpty { generalAddresses = Self.rootNameServers } }
        }
        /// The descriptor of a netlink socket of the route protocol (`NETLINK_ROUTE`) to listen on, which
        /// somebody with more privilege opened with a larger buffer, like systemd's `ListenNetlink=` with
        /// `ReceiveBuffer=`. It has to belong to the namespace that is watched. A copy is used. Default
        /// `nil`: one is opened.
        public var inheritedSocket: CInt?

        /// For tests.
        package var resolverFiles = ResolverConfigurationWatch.systemPaths
        /// For tests.
        package var clock = MonitorClock.system
        /// Ways to break the monitor, for tests.
        package var faults = MonitorFaults()

        private static let rootNameServers = [
            IPAddress("198.41.0.4")!, IPAddress("2001:503:ba3e::2:30")!,
            IPAddress("193.0.14.129")!, IPAddress("2001:7fd::1")!,
        ]

        /// Makes a configuration of the defaults.
        public init() {}
    }

    /// What a monitor has counted since it was made.
    package struct Statistics: Hashable, Sendable {
        package var recomputations = 0
        /// Addresses looked up.
        package var lookups = 0
        /// Lookups of names that were started.
        package var nameLookups = 0
        package var overruns = 0
        package var malformed = 0
        package var foreign = 0

        mutating func add(_ batch: EventSocket.Batch) {
            if batch.isOverrun { overruns += 1 }
            malformed += batch.malformed
            foreign += batch.foreign
        }
    }

    /// The monitor of this process's network namespace, which managers use by default.
    public static let shared = PathMonitor()

    /// `nil` where the namespace cannot be entered.
    private let monitorCore: MonitorCore?
    private let startFailure: Mutex<SystemError?>
    private let isRetrying = Atomic(false)
    private let reconnectInterval: Duration
    private let nextID = Atomic<UInt64>(0)

    /// Starts a monitor.
    ///
    /// It always starts: where there is no netlink, where the namespace cannot be entered, and while there are no
    /// descriptors or threads, ``failure`` tells why; starting is tried again with each use and every
    /// ``Configuration/reconnectInterval``. Without netlink every path is looked up now and then by other means, which can tell that there is one
    /// but not that there is none: then the status is `unknown`. Returns when the kernel's state has been
    /// read once, which takes about a millisecond.
    ///
    /// - Parameter configuration: How the monitor works.
    public convenience init(configuration: Configuration = Configuration()) {
        let namespace = configuration.networkNamespace
        let resolver = namespace.map { NameResolver(networkNamespace: $0) } ?? .shared
        self.init(configuration: configuration, resolver: resolver)
    }

    package init(configuration: Configuration, resolver: NameResolver) {
        reconnectInterval = configuration.reconnectInterval
        do throws(SystemError) {
            let loop = try Self.loop(configuration.networkNamespace)
            let core = MonitorCore(loop: loop, configuration: configuration, resolver: resolver)
            // Work that comes before the thread runs waits for it, and this is the first.
            loop.execute { core.assumeIsolated { $0.start() } }
            monitorCore = core
            startFailure = Mutex(nil)
        } catch {
            monitorCore = nil
            startFailure = Mutex(error)
        }
        core?.loop.runAndWait {}
    }

    private static func loop(_ networkNamespace: String?) throws(SystemError) -> EventLoop {
        guard let networkNamespace else { return EventLoop(startingLater: "nw-path") }
        return try EventLoop(label: "nw-path", networkNamespace: networkNamespace)
    }

    /// The monitor's core, while it has a thread; starts it if need be.
    private var core: MonitorCore? {
        guard let monitorCore else { return nil }
        do throws(SystemError) {
            try monitorCore.loop.start()
            return monitorCore
        } catch {
            startFailure.withLock { $0 = error }
            if error != .forked { startLater() }
            return nil
        }
    }

    /// Watches that were begun without a thread get their statuses once there is one. Not by Dispatch, which ends the
    /// process when it lacks the descriptors for a timer.
    private func startLater() {
        guard !isRetrying.exchange(true, ordering: .relaxed) else { return }
        let (seconds, attoseconds) = reconnectInterval.components
        let pause = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
        do throws(SystemError) {
            try startDetachedThread(named: "nw-path-start") { [weak self, pause] in
                var pause = pause
                nanosleep(&pause, nil)
                self?.isRetrying.store(false, ordering: .relaxed)
                _ = self?.core
            }
        } catch {
            // The next use tries again.
            isRetrying.store(false, ordering: .relaxed)
        }
    }

    /// Why the kernel cannot be asked: the failed system call and its error. `nil` while all is well. A
    /// namespace that cannot be entered is final; netlink is tried again.
    public var failure: SystemError? {
        guard let core else { return startFailure.withLock { $0 } }
        return core.failure.withLock { $0 }
    }

    /// Watches a target.
    ///
    /// - Parameters:
    ///   - target: What to watch.
    ///   - options: What is special about the packets whose way is asked for. Default nothing.
    ///   - onUpdate: Called with the first status, and then with every one that differs from the one
    ///     before. It runs on the monitor's thread and must not block. The first call comes at once for an
    ///     address; for a name when its first lookup ends, at the latest after 2 s.
    /// - Returns: The watch, which lasts as long as it is retained and not cancelled.
    public func watch(
        _ target: PathTarget,
        options: PathOptions = PathOptions(),
        onUpdate: @escaping @Sendable (PathStatus) -> Void
    ) -> PathWatch {
        let id = nextID.add(1, ordering: .relaxed).newValue
        let key = WatchKey(target: target, options: options)
        let watch = PathWatch(monitor: self, key: key, id: id, onUpdate: onUpdate)
        let delivery = watch.delivery
        if core == nil { delivery.deliver(Self.unknowable(target)) }
        monitorCore?.perform { $0.subscribe(.init(id: id) { delivery.deliver($0) }, to: key) }
        return watch
    }

    /// The statuses of a target, the present one first; for a name it takes up to 2 s. Only the newest is kept for
    /// a slow reader. The sequence does not end by itself; ending the reading ends the watch.
    ///
    /// - Parameters:
    ///   - target: What to watch.
    ///   - options: What is special about the packets whose way is asked for. Default nothing.
    public func statuses(
        of target: PathTarget,
        options: PathOptions = PathOptions()
    ) -> AsyncStream<PathStatus> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let watch = self.watch(target, options: options) { continuation.yield($0) }
            continuation.onTermination = { _ in watch.cancel() }
        }
    }

    /// Judges addresses once, as it is when the monitor's thread comes to it: the edge away from reachable too,
    /// which ``watch(_:options:onUpdate:)`` holds back for ``Configuration/settle``. Returns at once.
    ///
    /// - Parameters:
    ///   - addresses: Of one host, of which one is enough; `nil` for the way out in general.
    ///   - answer: Called once, on the monitor's thread, which it must not block.
    package func judge(
        _ addresses: [IPAddress]?,
        answer: @escaping @Sendable (PathStatus.Verdict) -> Void
    ) {
        guard let core else { return answer(.unknown(.noNetlink)) }
        core.perform { answer($0.verdictNow(on: addresses)) }
    }

    /// Judges a watched target once, as ``judge(_:answer:)`` judges addresses: by new lookups, and including a loss
    /// that ``watch(_:options:onUpdate:)`` still holds back. Returns immediately.
    ///
    /// - Parameter answer: Called once with the verdict and the path's generation, or with `nil` when the target is not
    ///   watched. It runs on the monitor's thread, which it must not block.
    package func judge(
        _ target: PathTarget,
        answer: @escaping @Sendable ((verdict: PathStatus.Verdict, generation: UInt64)?) -> Void
    ) {
        guard let core else { return answer(nil) }
        core.perform { answer($0.verdictNow(on: target)) }
    }

    /// The paths to all addresses of a watched target that there is a path to, in the order of preference: that of its
    /// status first. Empty when nobody watches it.
    func paths(to target: PathTarget) async -> [NetworkPath] {
        guard let core else { return [] }
        return await core.paths(to: WatchKey(target: target, options: PathOptions()))
    }

    /// The interfaces and the way out in general, now. Read on the monitor's thread, for which the caller waits
    /// as it would for a lock.
    public var snapshot: NetworkSnapshot {
        guard let core else { return Self.unknowableSnapshot }
        return core.loop.runAndWait { core.assumeIsolated { $0.snapshot } }
    }

    /// What ``snapshot`` shows, now and after each change. Only the newest is kept for a slow reader.
    public var snapshots: AsyncStream<NetworkSnapshot> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            if core == nil { continuation.yield(Self.unknowableSnapshot) }
            let id = nextID.add(1, ordering: .relaxed).newValue
            monitorCore?.perform { $0.subscribeToSnapshots(id) { continuation.yield($0) } }
            // Not only the subscription but the monitor too lasts as long as somebody reads.
            continuation.onTermination = { [self] _ in
                self.monitorCore?.perform { $0.unsubscribeFromSnapshots(id) }
            }
        }
    }

    private static var unknowableSnapshot: NetworkSnapshot {
        NetworkSnapshot(generation: 0, interfaces: [], general: unknowable(.general))
    }

    func end(_ id: UInt64, _ key: WatchKey) {
        monitorCore?.perform { $0.unsubscribe(id, from: key) }
    }

    /// The status of a watched target, read on the monitor's thread. The caller waits as it would for a
    /// lock: nothing on that thread ever blocks.
    func statusNow(of key: WatchKey) -> PathStatus {
        guard let core else { return Self.unknowable(key.target) }
        return core.loop.runAndWait { core.assumeIsolated { $0.status(of: key) } }
    }

    private static func unknowable(_ target: PathTarget) -> PathStatus {
        PathStatus(target: target, finding: Finding(.unknown(.noNetlink)), pathGeneration: 0)
    }

    // MARK: For tests

    /// What this monitor has counted.
    package var statistics: Statistics {
        guard let core else { return Statistics() }
        return core.loop.runAndWait { core.assumeIsolated { $0.statistics } }
    }

    /// Acts as after a suspension.
    package func renew() {
        core?.perform { $0.renew() }
    }

    /// Makes the kernel's filter tight around what is watched now, without waiting for more to come.
    package func tightenFilter() {
        core?.perform { $0.tightenFilter() }
    }

    /// Takes everything that the kernel has announced so far and acts on it, however short ago it last did.
    package func catchUp() {
        core?.loop.runAndWait { [core] in core?.assumeIsolated { $0.catchUp() } }
    }

    /// Takes bytes as if the kernel had sent them.
    package func ingest(_ datagram: [UInt8]) {
        core?.perform { core in
            var bytes = datagram
            var batch = EventSocket.Batch()
            bytes.withUnsafeMutableBytes { batch.add($0) }
            core.take(batch)
        }
    }

    /// Runs something on the monitor's thread, which receives nothing meanwhile.
    package func occupy(_ body: @escaping @Sendable () -> Void) {
        core?.loop.execute(body)
    }
}
