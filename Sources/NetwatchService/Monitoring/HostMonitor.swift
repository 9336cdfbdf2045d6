internal import ClientCore
internal import FoundationEssentials
package import Logging
package import NetworkReachability
package import OfflineQueue

/// Watches the configured hosts, logs their changes, records their history and passes their changes to the hooks.
package actor HostMonitor {
    fileprivate struct Entry {
        let watch: HostWatch
        /// The origins that a successful probe has reached.
        let origins: [Origin]
        var tracker: HostTracker
        /// Without the times.
        var snapshot: HostSnapshot
        /// When the last probe ended.
        var probed: HostTracker.Start?
        /// When the last successful probe ended.
        var succeeded: HostTracker.Start?

        /// What is known about the host, with the times by the wall clock as it is set now.
        func snapshot(at now: HostTracker.Moment) -> HostSnapshot {
            var snapshot = snapshot
            snapshot.since = tracker.since?.wall(at: now)
            snapshot.probedAt = probed?.wall(at: now)
            snapshot.succeededAt = succeeded?.wall(at: now)
            return snapshot
        }
    }

    private struct Observation: Sendable {
        let name: String
        /// Identifies the watch, because observations of a replaced watch may still arrive.
        let watch: Int
        let report: HostReport
        let time: HostTracker.Moment
    }

    /// How often time is accounted, and how often it is written.
    private static let tick = Duration.seconds(10)
    private static let ticksPerWrite = 6
    /// The maximum number of buckets, and of changes of outages, that wait in memory while the history cannot be
    /// written. Older ones are dropped.
    private static let mostWaiting = 10_000

    private let monitor: PathMonitor
    private let history: HostHistory?
    private let hooks: HookReporter?
    private let onSuccess: @Sendable ([Origin]) -> Void
    private let logger: Logger
    private let clock: @Sendable () -> HostTracker.Moment
    private let observations: AsyncStream<Observation>
    private let continuation: AsyncStream<Observation>.Continuation
    /// The hosts to watch; `nil` before the first call of ``run(_:)`` or ``update(_:)``.
    private var hosts: [WatchedHost]?
    /// Whether ``run(_:)`` has begun and does not watch the hosts yet.
    private var isStarting = false
    private var entries: [String: Entry] = [:]
    private var order: [String] = []
    private var watches: [String: Int] = [:]
    private var newestWatch = 0
    /// The outages of hosts that are not watched now, for when they are watched again.
    private var outages: [String: HostTracker.Outage] = [:]
    private var batch = HistoryBatch()
    private var hasWriteFailed = false
    /// The changes that have not been passed to the hooks, and what passes them.
    private var unpublished: [(change: HostTracker.Change, host: WatchedHost)] = []
    private var publishing: Task<Void, Never>?
    /// The last write, which the next one waits for.
    private var lastWrite: Task<Void, Never>?

    /// - Parameters:
    ///   - history: Where the history is written; `nil` for nowhere.
    ///   - hooks: What reports the changes. Default: `nil`, nothing.
    ///   - onSuccess: Called after each successful probe, with the origins that it has reached. Must not
    ///     block. Default: does nothing.
    ///   - clock: Returns the current time. Default: the system's clocks.
    package init(
        monitor: PathMonitor,
        history: HostHistory?,
        hooks: HookReporter? = nil,
        onSuccess: @escaping @Sendable ([Origin]) -> Void = { _ in },
        logger: Logger,
        clock: @escaping @Sendable () -> HostTracker.Moment = { .now }
    ) {
        self.monitor = monitor
        self.history = history
        self.hooks = hooks
        self.onSuccess = onSuccess
        self.logger = logger
        self.clock = clock
        (observations, continuation) = AsyncStream.makeStream()
    }

    /// Continues the outages of the history, and watches the hosts until the task is cancelled. Then writes the rest of
    /// the history.
    ///
    /// - Parameter initial: The hosts to watch until the next call of ``update(_:)``. Not used if it was called before.
    package func run(_ initial: [WatchedHost]) async {
        isStarting = true
        hosts = hosts ?? initial
        let recorded = await resume()
        await watchHosts(continuing: recorded)
        isStarting = false
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.takeObservations() }
            group.addTask { await self.keepAccounts() }
            await group.waitForAll()
        }
        // The outages stay open in the history, so that the next run can continue them.
        for name in order { remove(name) }
        await write()
    }

    /// Watches these hosts from now on. A host whose settings did not change keeps its state. Another one keeps its
    /// outage until it is observed again.
    ///
    /// The last call counts. While ``run(_:)`` starts, this function returns before the hosts are watched.
    package func update(_ new: [WatchedHost]) async {
        hosts = new
        if !isStarting { await watchHosts() }
    }

    /// Watches the hosts of the last call of ``update(_:)``, even if there is one while this function waits.
    ///
    /// - Parameter recorded: The outages of the history, at the start. Default: `nil`, at an update.
    private func watchHosts(continuing recorded: [String: HostTracker.Outage]? = nil) async {
        var recorded = recorded
        var watched: [WatchedHost]?
        while let hosts, hosts != watched {
            await watch(hosts, continuing: recorded)
            (watched, recorded) = (hosts, nil)
        }
    }

    private func watch(_ hosts: [WatchedHost], continuing recorded: [String: HostTracker.Outage]?) async {
        let names = Set(hosts.map(\.name))
        await hooks?.watch(names)
        // Does not suspend from here on, so that ``snapshots`` are those of the earlier hosts or of the new ones.
        batch.addWatched(names)
        if let recorded {
            // The trackers of an update before the start do not have the outages of the history.
            for name in order { remove(name) }
            outages = recorded
        }
        for name in order where !names.contains(name) { remove(name) }
        for host in hosts where entries[host.name]?.snapshot.host != host {
            remove(host.name)
            add(host)
        }
        order = hosts.map(\.name)
        for name in outages.keys { batch.endOutage(of: name, at: HostTracker.Start(clock())) }
        outages = [:]
    }

    /// What is known about each host, in the order of the configuration.
    package var snapshots: [HostSnapshot] {
        let now = clock()
        return order.compactMap { entries[$0]?.snapshot(at: now) }
    }

    /// Returns the buckets of a tier that have not been written yet, by host and start.
    func unwritten(_ tier: HistoryTier) -> [String: [Int64: HistoryBucket]] {
        account()
        var buckets: [String: [Int64: HistoryBucket]] = [:]
        for (key, bucket) in batch.buckets where key.tier == tier {
            buckets[key.host, default: [:]][key.start] = bucket
        }
        return buckets
    }

    // MARK: Hosts

    private func add(_ host: WatchedHost) {
        newestWatch += 1
        let (id, clock, continuation) = (newestWatch, clock, continuation)
        do {
            let watch = try HostWatch(host, monitor: monitor) { report in
                continuation.yield(Observation(name: host.name, watch: id, report: report, time: clock()))
            }
            let tracker = HostTracker(
                fall: host.fall,
                rise: host.rise,
                continuing: outages.removeValue(forKey: host.name),
                now: clock()
            )
            let snapshot = HostSnapshot(host)
            entries[host.name] = Entry(
                watch: watch,
                origins: host.origins,
                tracker: tracker,
                snapshot: snapshot
            )
            watches[host.name] = id
        } catch {
            logger.error(
                "host `\(host.name)` cannot be watched: \(error)",
                metadata: .fields([.host: host.name])
            )
        }
    }

    private func remove(_ name: String) {
        guard var entry = entries.removeValue(forKey: name) else { return }
        watches[name] = nil
        outages[name] = entry.tracker.outage
        for span in entry.tracker.account(until: clock()) { batch.add(span, of: name) }
    }

    private func takeObservations() async {
        for await observation in observations {
            if let origins = reachedOrigins(observation) { onSuccess(origins) }
            if let (change, host) = take(observation) { publish(change, of: host) }
        }
        await publishing?.value
    }

    /// Returns the origins that a successful probe has reached; `nil` if the observation is something else.
    private func reachedOrigins(_ observation: Observation) -> [Origin]? {
        guard watches[observation.name] == observation.watch, case .success(_?) = observation.report else {
            return nil
        }
        return entries[observation.name]?.origins
    }

    /// Writes a change immediately, so that a crash does not lose the beginning or the end of an outage, and then
    /// passes it to the hooks. Changes that are observed during a write are written together after it: an outage of the
    /// link may concern thousands of hosts.
    ///
    /// After a crash between these two steps, the hooks find the beginning of an outage in the history, and report its
    /// end when the host is observed to be up.
    private func publish(_ change: HostTracker.Change, of host: WatchedHost) {
        unpublished.append((change, host))
        if publishing == nil { publishing = Task { await publishAll() } }
    }

    private func publishAll() async {
        while !unpublished.isEmpty {
            let changes = unpublished
            unpublished = []
            await write()
            await hooks?.report(changes)
        }
        publishing = nil
    }

    /// Returns the change of the host's state, if any.
    private func take(_ observation: Observation) -> (change: HostTracker.Change, host: WatchedHost)? {
        let name = observation.name
        guard watches[name] == observation.watch, var entry = entries[name] else { return nil }
        let (change, spans) = entry.tracker.take(observation.report, at: observation.time)
        for span in spans { batch.add(span, of: name) }
        entry.record(observation.report, at: observation.time)
        entry.snapshot.show(entry.tracker)
        recordProbe(observation)
        if let change {
            entry.snapshot.changes += 1
            batch.add(change, of: name)
            log(change, of: name)
        }
        entries[name] = entry
        // Confirms the recovery soon, instead of after the interval.
        if case .success = observation.report, entry.tracker.state == .down(.remote) { entry.watch.check() }
        return change.map { (change: $0, host: entry.snapshot.host) }
    }

    private func recordProbe(_ observation: Observation) {
        let (name, time) = (observation.name, observation.time.wall)
        switch observation.report {
        case .success(let latency?):
            batch.addProbe(of: name, at: time, latency: latency, isSuccess: true)
        case .failure:
            batch.addProbe(of: name, at: time, latency: nil, isSuccess: false)
        case .success, .unknown, .noPath, .path, .captive:
            break
        }
    }

    private func log(_ change: HostTracker.Change, of name: String) {
        let reason = change.reason.map { ": \($0)" } ?? ""
        let fields = Logger.Metadata.fields([.host: name])
        switch (change.old, change.new) {
        case (_, .down(let cause)):
            logger.warning(
                "host `\(name)` is down (\(cause.rawValue))\(reason)",
                metadata: .fields([.host: name, .cause: cause.rawValue])
            )
        case (.down, .up):
            let start = change.oldSince?.wall(at: change.time)
            let since = start.map { "; it was down since \(Date(milliseconds: $0).rfc3339)" } ?? ""
            logger.notice("host `\(name)` is up\(since)", metadata: fields)
        case (_, .up): logger.notice("host `\(name)` is up", metadata: fields)
        case (.unknown, .unknown): break
        case (_, .unknown): logger.info("host `\(name)` is unknown\(reason)", metadata: fields)
        }
    }

    // MARK: History

    /// Lets the hooks continue what the previous run has recorded, and returns the outages of the history.
    private func resume() async -> [String: HostTracker.Outage] {
        guard let history else { return [:] }
        var recorded: [String: HostTracker.Outage] = [:]
        do {
            recorded = try await history.resume(now: clock())
            try await hooks?.resume(hosts ?? [])
        } catch {
            if !Task.isCancelled { logger.warning("the history of the hosts cannot be read: \(error)") }
        }
        return recorded
    }

    private func keepAccounts() async {
        var ticks = 0
        while (try? await Task.sleep(for: Self.tick)) != nil {
            account()
            ticks += 1
            if ticks % Self.ticksPerWrite == 0 {
                await write()
                await hooks?.retry()
            }
            if ticks % (60 * Self.ticksPerWrite) == 1 { try? await history?.removeOld(now: clock()) }
        }
    }

    /// Adds the time until now to the batch.
    private func account() {
        let now = clock()
        for name in entries.keys {
            for span in entries[name]?.tracker.account(until: now) ?? [] { batch.add(span, of: name) }
        }
    }

    /// Writes the batch after all earlier ones, because the order of the changes matters.
    private func write() async {
        // The database refuses to write in a cancelled task, so this is a separate task.
        let task = Task { [lastWrite] in
            await lastWrite?.value
            await writeBatch()
        }
        lastWrite = task
        await task.value
    }

    private func writeBatch() async {
        guard !batch.isEmpty else { return }
        guard let history else { return batch.shrink(to: Self.mostWaiting) }
        let (written, now) = (batch, clock())
        batch = HistoryBatch()
        do {
            try await history.write(written, now: now)
            hasWriteFailed = false
        } catch {
            if !hasWriteFailed { logger.warning("the history of the hosts cannot be written: \(error)") }
            hasWriteFailed = true
            let later = batch
            batch = written
            batch.add(later)
            batch.shrink(to: Self.mostWaiting)
        }
    }
}

extension HostMonitor.Entry {
    /// Counts a probe.
    fileprivate mutating func record(_ report: HostReport, at time: HostTracker.Moment) {
        switch report {
        case .success(let latency):
            snapshot.successes += 1
            succeeded = HostTracker.Start(time)
            probed = succeeded
            if let latency { snapshot.latencies.add(latency) }
        case .failure, .captive:
            snapshot.failures += 1
            probed = HostTracker.Start(time)
        case .unknown, .noPath, .path: break
        }
    }
}

extension HostSnapshot {
    fileprivate mutating func show(_ tracker: HostTracker) {
        state = tracker.state
        isDegraded = tracker.isDegraded
        reason = tracker.reason
        latency = tracker.latency
    }
}
