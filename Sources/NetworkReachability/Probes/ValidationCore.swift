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

/// Decides when the path of one target is probed, and which status to publish. A pure value.
///
/// At most one probe runs at a time. If its path is lost, the probe is cancelled and its result is dropped. The next
/// probe then waits until the cancelled one has ended. Statuses are published unchanged.
struct ValidationSchedule<Instant: InstantProtocol>: Sendable where Instant.Duration == Duration {
    /// An action that the caller must perform. Each method returns its actions in the order in which to perform them.
    enum Action: Hashable, Sendable {
        /// Pass this status on to the user of the validator.
        case publish(ValidatedStatus)
        /// Start a probe over this path. When it ends, even after ``cancel``, call ``ended(_:now:random:)``.
        case start(NetworkPath)
        /// Cancel the running probe.
        case cancel
    }

    private enum ProbeState: Sendable {
        case none
        case running
        /// Cancelled, but not ended yet.
        case ending
    }

    /// The delay after the first failed probe: 1 s. It doubles with each further failure, up to the interval.
    static var firstRetry: Duration { .seconds(1) }
    /// The minimum time between the starts of two probes: 250 ms. A flapping link then causes no storm of probes.
    static var spacing: Duration { .milliseconds(250) }
    /// The minimum time between the starts of two probes if ``check(now:)`` requests the second one: 1 s. It is longer
    /// than ``spacing`` because a client may call `check` for every failed request.
    static var checkSpacing: Duration { .seconds(1) }
    /// The random variation of the interval, as a part of it: 10 percent in either direction. It keeps machines that
    /// started at the same time from always probing at the same time.
    static var intervalJitter: Double { 0.1 }
    /// The random variation of the delay after a failure, as a part of it: 25 percent in either direction. It is larger
    /// than ``intervalJitter``, because the probes of all machines in a network usually fail at the same time.
    static var retryJitter: Double { 0.25 }

    private let interval: Duration?
    private var status: PathStatus?
    private var result: ProbeResult?
    private var probeState = ProbeState.none
    private var due: Instant?
    private var lastStart: Instant?
    private var failures = 0

    /// - Parameter interval: The time from the end of a probe to the start of the next one over the same path. Minimum:
    ///   1 s. With `nil`, each path is probed once, unless ``check(now:)`` requests another probe.
    init(interval: Duration?) {
        self.interval = interval.map { max($0, Self.firstRetry) }
    }

    /// The time when the caller must call ``timeHasPassed(now:)``; `nil` if no probe is scheduled.
    var nextDue: Instant? {
        if case .none = probeState { due } else { nil }
    }

    // MARK: Events

    /// Records a new status of the target.
    mutating func take(_ new: PathStatus, now: Instant) -> [Action] {
        let isSamePath = Self.isSamePath(status, new)
        status = new
        guard !isSamePath else { return publish() }
        result = nil
        failures = 0
        due = new.path.map { _ in earliestStart(after: Self.spacing, now: now) }
        return cancelProbe() + publish() + startIfDue(now: now)
    }

    /// Requests a probe of the path as soon as ``checkSpacing`` allows. Has no effect while a probe runs or without a
    /// path.
    mutating func check(now: Instant) -> [Action] {
        guard status?.path != nil, case .none = probeState else { return [] }
        let start = earliestStart(after: Self.checkSpacing, now: now)
        due = due.map { min($0, start) } ?? start
        return startIfDue(now: now)
    }

    /// Records the end of the probe. The result of a cancelled probe is dropped.
    ///
    /// - Parameter random: A random number from 0 to 1, which selects the jitter of the next delay.
    mutating func ended(_ new: ProbeResult, now: Instant, random: Double) -> [Action] {
        let isWanted = if case .running = probeState { true } else { false }
        probeState = .none
        guard isWanted else { return startIfDue(now: now) }
        result = new
        failures = new.validation.isGood ? 0 : failures + 1
        due = waitingTime(random: random).map { now.advanced(by: $0) }
        return publish()
    }

    /// Starts a probe if one is due.
    mutating func timeHasPassed(now: Instant) -> [Action] {
        startIfDue(now: now)
    }

    // MARK: Decisions

    /// Returns whether the result of a probe for the old status also applies to the new one.
    private static func isSamePath(_ old: PathStatus?, _ new: PathStatus) -> Bool {
        old?.pathGeneration == new.pathGeneration && old?.path?.destination == new.path?.destination
    }

    private func earliestStart(after spacing: Duration, now: Instant) -> Instant {
        lastStart.map { max(now, $0.advanced(by: spacing)) } ?? now
    }

    private func publish() -> [Action] {
        status.map { [.publish(ValidatedStatus(status: $0, probe: result))] } ?? []
    }

    private mutating func cancelProbe() -> [Action] {
        guard case .running = probeState else { return [] }
        probeState = .ending
        return [.cancel]
    }

    private mutating func startIfDue(now: Instant) -> [Action] {
        guard case .none = probeState, let due, due <= now, let path = status?.path else { return [] }
        probeState = .running
        lastStart = now
        self.due = nil
        return [.start(path)]
    }

    private func waitingTime(random: Double) -> Duration? {
        guard let interval else { return nil }
        guard failures > 0 else { return interval.jittered(by: Self.intervalJitter, random) }
        return Self.firstRetry.doubled(times: failures - 1, upTo: interval).jittered(
            by: Self.retryJitter,
            random
        )
    }
}

extension PathValidation {
    /// Whether the next probe can wait for the full interval. It comes sooner after a captive or failed result.
    fileprivate var isGood: Bool {
        switch self {
        case .none, .valid: true
        case .captive, .failed: false
        }
    }
}

/// A status together with the result of probing its path.
public struct ValidatedStatus: Hashable, Sendable {
    /// The status according to the kernel. Probes do not change it.
    public let status: PathStatus
    /// The newest result for the path of ``status``; `nil` before the first result and while there is no path.
    public let probe: ProbeResult?

    /// Creates a validated status.
    public init(status: PathStatus, probe: ProbeResult?) {
        self.status = status
        self.probe = probe
    }

    /// The validation in ``probe``, or ``PathValidation/none`` if there is no result.
    public var validation: PathValidation {
        probe?.validation ?? .none
    }
}
