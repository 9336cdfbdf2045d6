internal import Glibc
public import NetwatchEventLoop
internal import NetwatchNetlink
internal import Synchronization

/// A monitor of the paths that the kernel would choose to hosts.
///
/// ```swift
/// let host = try NetworkHost(validating: "example.com")
/// for await status in PathMonitor.shared.statuses(of: .host(host)) {
///     print(status.isReachable, status.path?.interfaceName ?? "no path", status.reason?.rawValue ?? "")
/// }
/// ```
///
/// A kernel notification (rtnetlink(7)) shows that something may have changed. The monitor then asks the kernel for the
/// path to each affected address, and checks the carrier of its interface and its source address. It sends no packets
/// except DNS queries for watched names. An instance owns one thread and two netlink sockets, and needs no privileges.
///
/// A watch receives its statuses one at a time, and each differs from the previous one. A change to reachable is
/// reported immediately, a loss after ``Configuration/settle``.
public final class PathMonitor: Sendable {
    /// The shared monitor of the process's network namespace, with the default configuration.
    /// ``NetworkReachabilityManager`` uses it by default.
    public static let shared = PathMonitor()

    /// The core; `nil` if the configured network namespace cannot be entered.
    private let monitorCore: MonitorCore?
    private let startFailure: Lock<SystemError?>
    private let isRetrying = Atomic(false)
    private let reconnectInterval: Duration
    private let nextID = Atomic<UInt64>(0)

    /// Starts a monitor. Returns after the kernel's state has been read once, which takes about 1 ms.
    ///
    /// This never throws. If netlink, descriptors or threads are unavailable, ``failure`` contains the error. The
    /// monitor then tries again at each use and every ``Configuration/reconnectInterval``. If the configured network
    /// namespace cannot be entered, it does not try again.
    ///
    /// Without netlink, the monitor looks up paths periodically with `connect(2)` on UDP sockets, which sends nothing.
    /// This can find a path, but cannot prove that there is none. The status is then `unknown` instead of not
    /// reachable.
    ///
    /// - Parameter configuration: The settings of the monitor. Default: the default of each setting.
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
            // The loop keeps this work until its thread starts, and runs it before all other work.
            loop.execute { core.assumeIsolated { $0.start() } }
            monitorCore = core
            startFailure = Lock(nil)
        } catch {
            monitorCore = nil
            startFailure = Lock(error)
        }
        core?.loop.runAndWait {}
    }

    private static func loop(_ networkNamespace: String?) throws(SystemError) -> EventLoop {
        guard let networkNamespace else { return EventLoop(startingLater: "nw-path") }
        return try EventLoop(label: "nw-path", networkNamespace: networkNamespace)
    }

    /// The core, with its thread running; `nil` if it has no thread. Each access tries to start a missing thread.
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

    /// Tries to start the monitor's thread again after the reconnect interval, so that watches that began without the
    /// thread get their statuses.
    ///
    /// Sleeps on a separate thread. Dispatch would terminate the process if it had no descriptors for a timer.
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
            // The next use of the monitor tries again.
            isRetrying.store(false, ordering: .relaxed)
        }
    }

    /// The failed system call and its error if netlink is unavailable; `nil` while it is available.
    ///
    /// The monitor tries again every ``Configuration/reconnectInterval``, unless the configured network namespace could
    /// not be entered.
    public var failure: SystemError? {
        guard let core else { return startFailure.withLock { $0 } }
        return core.failure.withLock { $0 }
    }

    /// Starts watching a target.
    ///
    /// ```swift
    /// let watch = monitor.watch(.general) { status in
    ///     print(status.isReachable ? "online" : "offline")
    /// }
    /// // Later, or by releasing the watch:
    /// watch.cancel()
    /// ```
    ///
    /// - Parameters:
    ///   - target: The target to watch.
    ///   - options: The socket options of the connections to the target. Default: no option is set.
    ///   - onUpdate: Called on the monitor's thread, which it must not block: first with the current status, then with
    ///     each status that differs from the previous one. For a name, the first call follows the first lookup, but
    ///     comes after 2 s at the latest. For an address it comes immediately, and so it does for a name that this
    ///     process has looked up within the last hour.
    /// - Returns: The watch. It lasts until it is cancelled or released.
    @preconcurrency
    public func watch(
        _ target: PathTarget,
        options: PathOptions = PathOptions(),
        onUpdate: @escaping @Sendable (PathStatus) -> Void
    ) -> PathWatch {
        let id = nextID.add(1, ordering: .relaxed).newValue
        let key = WatchKey(target: target, options: options)
        let watch = PathWatch(monitor: self, key: key, id: id, onUpdate: onUpdate)
        let delivery = watch.delivery
        if core == nil { delivery.deliver(Self.unknownStatus(target)) }
        monitorCore?.perform { $0.subscribe(.init(id: id) { delivery.deliver($0) }, to: key) }
        return watch
    }

    /// Starts watching a target, and returns its statuses as a sequence. The first element is the current status.
    ///
    /// For a name, the first status takes up to 2 s. A slow reader gets only the newest status. The sequence does not
    /// end by itself. The watch ends when the iteration ends or its task is cancelled.
    ///
    /// - Parameters:
    ///   - target: The target to watch.
    ///   - options: The socket options of the connections to the target. Default: no option is set.
    public func statuses(
        of target: PathTarget,
        options: PathOptions = PathOptions()
    ) -> AsyncStream<PathStatus> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let watch = self.watch(target, options: options) { continuation.yield($0) }
            continuation.onTermination = { _ in watch.cancel() }
        }
    }

    /// Looks up addresses once, on the monitor's thread. Returns before the lookup.
    ///
    /// The verdict may report a loss before the watches do, because they receive it only after
    /// ``Configuration/settle``.
    ///
    /// - Parameters:
    ///   - addresses: The addresses of one host. One reachable address makes the host reachable. `nil` for
    ///     ``PathTarget/general``.
    ///   - port: The TCP port to connect to. Default: `nil`, unknown.
    ///   - answer: Called once with the verdict, on the monitor's thread, which it must not block.
    package func lookUp(
        _ addresses: [IPAddress]?,
        port: UInt16? = nil,
        answer: @escaping @Sendable (PathStatus.Verdict) -> Void
    ) {
        guard let core else { return answer(.unknown(.noNetlink)) }
        core.perform { answer($0.verdictNow(on: addresses, port: port)) }
    }

    /// Looks up the known addresses of a watched target once, on the monitor's thread. Returns before the lookup.
    ///
    /// The verdict may report a loss before the watches do, because they receive it only after
    /// ``Configuration/settle``.
    ///
    /// - Parameters:
    ///   - port: The ``PathOptions/port`` of the watch. Default: `nil`, it has none.
    ///   - answer: Called once on the monitor's thread, which it must not block. Receives the verdict and the
    ///     ``PathStatus/pathGeneration`` of the current path, or `nil` if the target is not watched with this port and
    ///     otherwise the default options.
    package func lookUp(
        _ target: PathTarget,
        port: UInt16? = nil,
        answer: @escaping @Sendable ((verdict: PathStatus.Verdict, generation: UInt64)?) -> Void
    ) {
        guard let core else { return answer(nil) }
        core.perform { answer($0.verdictNow(on: target, port: port)) }
    }

    /// Returns the paths to all reachable addresses of a watched target, in the resolver's order. The first is the path
    /// of its status. Empty if the target is not watched.
    func paths(to target: PathTarget, _ options: PathOptions) async -> [NetworkPath] {
        guard let core else { return [] }
        return await core.paths(to: WatchKey(target: target, options: options))
    }

    /// The current interfaces and general reachability.
    ///
    /// The getter reads them on the monitor's thread. The caller waits briefly for this thread, which never blocks.
    public var snapshot: NetworkSnapshot {
        guard let core else { return Self.unknownSnapshot }
        return core.loop.runAndWait { core.assumeIsolated { $0.snapshots.current } }
    }

    /// The snapshots as a sequence: the current one, and then one for each change. A slow reader gets only the newest
    /// one.
    public var snapshots: AsyncStream<NetworkSnapshot> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            if core == nil { continuation.yield(Self.unknownSnapshot) }
            let id = nextID.add(1, ordering: .relaxed).newValue
            monitorCore?.perform { $0.snapshots.subscribe(id) { continuation.yield($0) } }
            // Retains the monitor too, not only the subscription, until iteration ends.
            continuation.onTermination = { [self] _ in
                self.monitorCore?.perform { $0.snapshots.unsubscribe(id) }
            }
        }
    }

    private static var unknownSnapshot: NetworkSnapshot {
        NetworkSnapshot(generation: 0, interfaces: [], general: unknownStatus(.general))
    }

    func end(_ id: UInt64, _ key: WatchKey) {
        monitorCore?.perform { $0.unsubscribe(id, from: key) }
    }

    /// Returns the current status of a watched target.
    ///
    /// The status is read on the monitor's thread. The caller waits briefly for this thread, which never blocks.
    func statusNow(of key: WatchKey) -> PathStatus {
        guard let core else { return Self.unknownStatus(key.target) }
        return core.loop.runAndWait { core.assumeIsolated { $0.status(of: key) } }
    }

    private static func unknownStatus(_ target: PathTarget) -> PathStatus {
        PathStatus(target: target, verdict: TargetVerdict(.unknown(.noNetlink)), pathGeneration: 0)
    }

    /// Returns the counters of this monitor. Does not block the caller's thread.
    package func currentStatistics() async -> Statistics {
        guard let core else { return Statistics() }
        return await core.currentStatistics
    }

    // MARK: For tests

    /// The counters of this monitor. The caller waits briefly for the monitor's thread.
    package var statistics: Statistics {
        guard let core else { return Statistics() }
        return core.loop.runAndWait { core.assumeIsolated { $0.currentStatistics } }
    }

    /// Marks all paths as suspect and looks them up again, as after a suspension.
    package func revalidate() {
        core?.perform { $0.revalidate() }
    }

    /// Narrows the kernel's notification filter to the watched addresses now, without the usual delay.
    package func narrowFilter() {
        core?.perform { $0.narrowFilter() }
    }

    /// Processes all pending kernel notifications now, without the usual minimum time between two recomputations.
    package func catchUp() {
        core?.loop.runAndWait { [core] in core?.assumeIsolated { $0.catchUp() } }
    }

    /// Looks up all addresses now, as at each ``Configuration/auditInterval``. At most 256 of them are looked up before
    /// this method returns.
    ///
    /// - Returns: The number of addresses so far whose verdict an audit has corrected.
    package func audit() -> Int {
        core?.loop.runAndWait { [core] in core?.assumeIsolated { $0.audit() } } ?? 0
    }

    /// Processes a datagram as if the kernel had sent it as a notification.
    package func ingest(_ datagram: [UInt8]) {
        core?.perform { core in
            var bytes = datagram
            var batch = EventSocket.Batch()
            bytes.withUnsafeMutableBytes { batch.add($0) }
            core.process(batch)
        }
    }

    /// Runs a closure on the monitor's thread. Until it returns, the monitor receives no notifications.
    package func block(with body: @escaping @Sendable () -> Void) {
        core?.loop.execute(body)
    }
}

extension PathMonitor {
    /// The counters of a monitor since its creation.
    package struct Statistics: Hashable, Sendable {
        package var recomputations = 0
        /// The number of addresses that were looked up in the kernel.
        package var lookups = 0
        /// The number of name lookups that were started.
        package var nameLookups = 0
        /// The number of batches of notifications during which the receive buffer overran.
        package var overruns = 0
        /// The number of kernel messages that could not be parsed.
        package var malformed = 0
        /// The number of messages that were ignored because the kernel did not send them.
        package var foreign = 0
        /// The number of changes of the published statuses. The first status of a target is not a change.
        package var statusChanges = 0
        /// The number of verdicts on addresses that only the lookup of all addresses at
        /// ``Configuration/auditInterval`` has corrected. 0 unless the monitor has a fault or the kernel changes a path
        /// without a notification, for example after an ICMP redirect. A fault may remain uncounted: after each
        /// notification another lookup of all addresses corrects the verdicts, and notifications at shorter intervals
        /// than this one postpone the counted lookup.
        package var auditCorrections = 0

        mutating func add(_ batch: EventSocket.Batch) {
            if batch.isOverrun { overruns += 1 }
            malformed += batch.malformed
            foreign += batch.foreign
        }
    }
}
