internal import NetwatchEventLoop
internal import Synchronization

/// The implementation of ``PathValidator``, on the probe thread. Performs the actions that ``ValidationSchedule``
/// returns.
actor ValidationCore {
    private typealias Schedule = ValidationSchedule<BootInstant>

    /// Limits how many probes of the process run at once to 128.
    ///
    /// That is an eighth of the usual limit of 1,024 descriptors (`RLIMIT_NOFILE` in getrlimit(2)). Without this limit,
    /// all watched hosts would be probed at the moment when a link comes up. For ten thousand hosts the process would
    /// need as many sockets, more than it may open.
    static let concurrentProbes = AsyncSemaphore(permits: 128)

    private let loop: EventLoop
    private let host: NetworkHost?
    private let probe: any Probe
    private let limit: AsyncSemaphore
    private let paths: @Sendable () async -> [NetworkPath]
    private let onUpdate: @Sendable (ValidatedStatus) -> Void
    private nonisolated let isStopped = Atomic(false)

    private var schedule: Schedule
    private var probeTask: Task<Void, Never>?
    private var timer: EventLoop.Timer?

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// - Parameter paths: Returns the paths to all reachable addresses of the target. Called for a ``RacingProbe``.
    init(
        loop: EventLoop,
        target: PathTarget,
        probe: any Probe,
        interval: Duration?,
        limit: AsyncSemaphore = concurrentProbes,
        paths: @escaping @Sendable () async -> [NetworkPath] = { [] },
        onUpdate: @escaping @Sendable (ValidatedStatus) -> Void
    ) {
        self.loop = loop
        host = if case .host(let host) = target { host } else { nil }
        self.probe = probe
        self.limit = limit
        self.paths = paths
        self.onUpdate = onUpdate
        schedule = Schedule(interval: interval)
    }

    // MARK: From any thread, in the order of the calls

    nonisolated func take(_ status: PathStatus) {
        perform { $0.act { $0.take(status, now: .now) } }
    }

    nonisolated func check() {
        perform { $0.act { $0.check(now: .now) } }
    }

    /// Stops the validator.
    ///
    /// If the probe thread is just delivering a status or a result, `onUpdate` may still run after this method returns.
    /// After that it is not called again.
    nonisolated func stop() {
        isStopped.store(true, ordering: .sequentiallyConsistent)
        perform { $0.end() }
    }

    private nonisolated func perform(_ body: @escaping @Sendable (isolated ValidationCore) -> Void) {
        loop.execute(on: self, body)
    }

    // MARK: On the probe thread

    private var hasStopped: Bool { isStopped.load(ordering: .sequentiallyConsistent) }

    private func act(_ step: (inout Schedule) -> [Schedule.Action]) {
        guard !hasStopped else { return }
        for action in step(&schedule) where !hasStopped {
            switch action {
            case .publish(let status): onUpdate(status)
            case .start(let path): start(over: path)
            case .cancel: probeTask?.cancel()
            }
        }
        wait()
    }

    private func start(over path: NetworkPath) {
        let (probe, host, limit, paths) = (probe, host, limit, paths)
        // Detached, because the probe must not run on this thread.
        probeTask = Task.detached { [weak self] in
            let result = await Self.run(probe, to: host, over: path, orOneOf: paths, limitedBy: limit)
            await self?.probeEnded(result)
        }
    }

    private static func run(
        _ probe: any Probe,
        to host: NetworkHost?,
        over path: NetworkPath,
        orOneOf paths: () async -> [NetworkPath],
        limitedBy limit: AsyncSemaphore
    ) async -> ProbeResult {
        do { try await limit.acquire() } catch { return ProbeResult(.failed("cancelled")) }
        defer { limit.release() }
        // Only a host has other addresses to try. The general target has none.
        guard host != nil, let probe = probe as? any RacingProbe else {
            return await probe.run(to: host, over: path)
        }
        let others = await paths().filter { $0.destination != path.destination }
        return await probe.run(to: host, over: [path] + others)
    }

    private func probeEnded(_ result: ProbeResult) {
        probeTask = nil
        act { $0.ended(result, now: .now, random: .random(in: 0...1)) }
    }

    private func wait() {
        if let timer { loop.cancel(timer) }
        timer = schedule.nextDue.map { due in
            loop.schedule(at: due) { [weak self] in
                self?.assumeIsolated { core in core.act { $0.timeHasPassed(now: .now) } }
            }
        }
    }

    private func end() {
        probeTask?.cancel()
        if let timer { loop.cancel(timer) }
        timer = nil
    }
}
