internal import Glibc
public import NetwatchEventLoop
internal import NetwatchNetlink
internal import Synchronization

/// Watches the paths that the kernel would choose to hosts.
///
/// The kernel's notifications (rtnetlink(7)) say that something may have changed. The monitor then looks up the path
/// in the kernel's own routing tables and checks the carrier of the interface and the source address. An instance
/// owns one thread and two netlink sockets and needs no privileges. It sends nothing but DNS queries for watched
/// names.
///
/// Consecutive statuses of one watch differ and are delivered one at a time. A change to reachable is reported
/// immediately, a loss after ``Configuration/settle``.
public final class PathMonitor: Sendable {
    /// The monitor of the process's network namespace. Managers use it by default.
    public static let shared = PathMonitor()

    /// The core; `nil` if the namespace cannot be entered.
    private let monitorCore: MonitorCore?
    private let startFailure: Mutex<SystemError?>
    private let isRetrying = Atomic(false)
    private let reconnectInterval: Duration
    private let nextID = Atomic<UInt64>(0)

    /// Starts a monitor.
    ///
    /// This always succeeds. If netlink, the namespace, descriptors or threads are unavailable, ``failure`` contains
    /// the error. Starting is retried with each use and every ``Configuration/reconnectInterval``.
    ///
    /// Without netlink, paths are looked up periodically by other means. These can find a path but cannot prove that
    /// there is none, so the status is then `unknown`.
    ///
    /// Returns after the kernel's state has been read once, which takes about a millisecond.
    ///
    /// - Parameter configuration: The settings of the monitor.
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
            // Work enqueued before the thread starts waits for it, and this is the first item.
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

    /// The monitor's core, if it has a thread. Starts the thread if needed.
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

    /// Retries starting the thread later, so that watches begun without it get their statuses. Does not use Dispatch,
    /// which terminates the process if it has no descriptors for a timer.
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

    /// Why netlink is unavailable: the failed system call and its error. `nil` while it is available. If the
    /// namespace cannot be entered, the failure is final; netlink is retried.
    public var failure: SystemError? {
        guard let core else { return startFailure.withLock { $0 } }
        return core.failure.withLock { $0 }
    }

    /// Watches a target.
    ///
    /// - Parameters:
    ///   - target: The target to watch.
    ///   - options: The socket options of the packets. Default: none.
    ///   - onUpdate: Called with the first status and then with each status that differs from the previous one. It
    ///     runs on the monitor's thread and must not block. The first call comes immediately for an address. For a
    ///     name it comes when the first lookup finishes, after 2 s at the latest.
    /// - Returns: The watch, which lasts until it is cancelled or released.
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

    /// Returns the statuses of a target, starting with the current one. For a name, the first one takes up to 2 s.
    ///
    /// A slow reader gets only the newest status. The sequence does not end by itself. The watch ends when iteration
    /// ends.
    ///
    /// - Parameters:
    ///   - target: The target to watch.
    ///   - options: The socket options of the packets. Default: none.
    public func statuses(
        of target: PathTarget,
        options: PathOptions = PathOptions()
    ) -> AsyncStream<PathStatus> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let watch = self.watch(target, options: options) { continuation.yield($0) }
            continuation.onTermination = { _ in watch.cancel() }
        }
    }

    /// Looks up addresses once, at the moment when the monitor's thread runs the request. The verdict includes a loss
    /// that ``watch(_:options:onUpdate:)`` still holds back for ``Configuration/settle``. Returns immediately.
    ///
    /// - Parameters:
    ///   - addresses: The addresses of one host, of which one reachable address is enough; `nil` for
    ///     ``PathTarget/general``.
    ///   - answer: Called once on the monitor's thread, which it must not block.
    package func lookUp(
        _ addresses: [IPAddress]?,
        answer: @escaping @Sendable (PathStatus.Verdict) -> Void
    ) {
        guard let core else { return answer(.unknown(.noNetlink)) }
        core.perform { answer($0.verdictNow(on: addresses)) }
    }

    /// Looks up the routes to a watched target once, like ``lookUp(_:answer:)`` for addresses. The verdict includes a
    /// loss that ``watch(_:options:onUpdate:)`` still holds back. Returns immediately.
    ///
    /// - Parameter answer: Called once with the verdict and the generation of the path, or with `nil` if the target
    ///   is not watched. It runs on the monitor's thread, which it must not block.
    package func lookUp(
        _ target: PathTarget,
        answer: @escaping @Sendable ((verdict: PathStatus.Verdict, generation: UInt64)?) -> Void
    ) {
        guard let core else { return answer(nil) }
        core.perform { answer($0.verdictNow(on: target)) }
    }

    /// Returns the paths to all reachable addresses of a watched target, in order of preference: the path of its
    /// status comes first. Empty if the target is not watched.
    func paths(to target: PathTarget) async -> [NetworkPath] {
        guard let core else { return [] }
        return await core.paths(to: WatchKey(target: target, options: PathOptions()))
    }

    /// The current interfaces and general reachability. Read on the monitor's thread; the caller blocks briefly, as
    /// for a lock.
    public var snapshot: NetworkSnapshot {
        guard let core else { return Self.unknownSnapshot }
        return core.loop.runAndWait { core.assumeIsolated { $0.snapshots.current } }
    }

    /// The value of ``snapshot``, now and after each change. A slow reader gets only the newest one.
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

    /// Returns the status of a watched target, read on the monitor's thread. The caller waits as for a lock; nothing
    /// on that thread ever blocks.
    func statusNow(of key: WatchKey) -> PathStatus {
        guard let core else { return Self.unknownStatus(key.target) }
        return core.loop.runAndWait { core.assumeIsolated { $0.status(of: key) } }
    }

    private static func unknownStatus(_ target: PathTarget) -> PathStatus {
        PathStatus(target: target, verdict: TargetVerdict(.unknown(.noNetlink)), pathGeneration: 0)
    }

    // MARK: For tests

    /// The counters of this monitor.
    package var statistics: Statistics {
        guard let core else { return Statistics() }
        return core.loop.runAndWait { core.assumeIsolated { $0.statistics } }
    }

    /// Does the same as after a suspension.
    package func revalidate() {
        core?.perform { $0.revalidate() }
    }

    /// Narrows the kernel's filter to the currently watched addresses immediately.
    package func narrowFilter() {
        core?.perform { $0.narrowFilter() }
    }

    /// Processes all pending kernel notifications, without waiting for the minimum spacing.
    package func catchUp() {
        core?.loop.runAndWait { [core] in core?.assumeIsolated { $0.catchUp() } }
    }

    /// Processes bytes as if the kernel had sent them.
    package func ingest(_ datagram: [UInt8]) {
        core?.perform { core in
            var bytes = datagram
            var batch = EventSocket.Batch()
            bytes.withUnsafeMutableBytes { batch.add($0) }
            core.process(batch)
        }
    }

    /// Runs a closure on the monitor's thread, which receives nothing in the meantime.
    package func block(with body: @escaping @Sendable () -> Void) {
        core?.loop.execute(body)
    }
}
