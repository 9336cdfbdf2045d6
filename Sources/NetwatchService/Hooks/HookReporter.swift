package import Logging
package import OfflineQueue

/// Reports the outages of hosts to the configured hooks.
///
/// A hook reports an outage once when it begins and once when it ends, whatever happens between; see ``HookOutage``.
/// The first change waits for ``Hook/groupWait``, and all changes until then are reported together; see ``HookState``.
package actor HookReporter {
    /// Stores a request in the queue of the service.
    package typealias Enqueue = @Sendable (QueueRequest, EnqueueOptions) async throws -> Void
    /// Returns after a duration, or throws if its task is cancelled before.
    package typealias Sleep = @Sendable (Duration) async throws -> Void

    /// The label of the lane of all webhooks. It is FIFO, so that `up` does not overtake `down`.
    static let lane = "netwatch-hooks"
    /// The maximum number of messages that wait because the queue has refused them: 100.
    private static let mostUnsent = 100

    private let enqueue: Enqueue
    private let sleep: Sleep
    private let clock: @Sendable () -> HostTracker.Moment
    private let history: HostHistory?
    private let programs: HookPrograms
    private let logger: Logger
    /// The hooks, in the order of the configuration.
    private var hooks: [HookState] = []
    private var hosts: [String: HookState.Host] = [:]
    /// The names of the hosts that are watched; `nil` before the first call of ``watch(_:)``.
    private var watched: Set<String>?
    /// What ends the waits of the hooks with hosts that wait, by the keys of the hooks.
    private var waits: [String: Task<Void, Never>] = [:]
    /// The messages that the queue has refused, in their order.
    private var unsent: [HostHistory.HookMessageRecord] = []
    /// The last report, which the next one waits for.
    private var lastReport: Task<Void, Never>?

    /// - Parameters:
    ///   - history: Where the reporter records what it has reported; `nil` for nowhere.
    ///   - clock: Returns the current time. Default: the system's clocks.
    ///   - sleep: Waits for a group wait. Default: `Task.sleep`.
    package init(
        logger: Logger,
        history: HostHistory?,
        clock: @escaping @Sendable () -> HostTracker.Moment = { .now },
        sleep: @escaping Sleep = { try await Task.sleep(for: $0) },
        enqueue: @escaping Enqueue
    ) {
        self.enqueue = enqueue
        self.sleep = sleep
        self.clock = clock
        self.history = history
        self.logger = logger
        programs = HookPrograms(logger: logger)
    }

    /// Creates a reporter that stores webhooks in a queue.
    package init(logger: Logger, history: HostHistory?, queue: OfflineQueue) {
        self.init(logger: logger, history: history) { request, options in
            _ = try await queue.enqueue(request, options: options)
        }
    }

    // MARK: Configuration

    /// Uses these hooks from now on. A hook that was used before continues with what it has reported. Another one
    /// reports the outages that last. Programs that already wait or run are not affected.
    package func use(_ new: [Hook]) {
        let old = Dictionary(hooks.map { ($0.key, $0) }) { first, _ in first }
        do throws(QueueError) {
            let keys = try Hook.keys(of: new)
            hooks = zip(new, keys).map { hook, key in
                old[key].map { HookState(hook, continuing: $0) } ?? HookState(hook, key: key)
            }
        } catch {
            logger.error("the hooks cannot be used: \(error)")
        }
        let keys = Set(hooks.map(\.key))
        for key in waits.keys where !keys.contains(key) { waits.removeValue(forKey: key)?.cancel() }
        for hook in new {
            guard case .program(let program) = hook.action, let fault = program.fault else { continue }
            logger.warning("\(fault)")
        }
    }

    /// Forgets the outages of all other hosts, and ignores changes of them that still arrive. Then reports the outages
    /// that a new hook, or a previous run of the service, has not reported.
    func watch(_ names: Set<String>) async {
        watched = names
        hosts = hosts.filter { names.contains($0.key) }
        for index in hooks.indices { hooks[index].keep(names) }
        let keys = Set(hooks.map(\.key))
        await write { try await $0.keepHooks(keys) }
        await consider(hosts.keys.sorted(), now: clock())
    }

    /// Continues what the previous run of the service has recorded. It may have ended before it has reported an outage,
    /// or before the queue has stored its messages.
    ///
    /// - Parameter watched: The hosts that are watched from now on. ``watch(_:)`` must be called afterwards.
    func resume(_ watched: [WatchedHost]) async throws {
        guard let history else { return }
        let outages = try await history.hookOutages(), reports = try await history.hookReports()
        for host in watched {
            guard let starts = outages[host.name] else { continue }
            hosts[host.name] = HookState.Host(check: host.checkText, condition: .down(HookOutage(starts)))
        }
        hooks = hooks.map { HookState($0.hook, key: $0.key, reported: reports[$0.key] ?? [:]) }
        unsent = try await history.hookMessages()
        await retry()
    }

    // MARK: Changes

    /// Records changes of hosts, and reports them after the group wait of each hook. If that is zero, returns when the
    /// webhooks are stored. Does not wait for programs.
    func report(_ changes: [(change: HostTracker.Change, host: WatchedHost)]) async {
        var names: [String] = [], known: Set<String> = []
        var now = changes.last?.change.time ?? clock()
        for (change, host) in changes where watched?.contains(host.name) ?? true {
            // A hook without a group wait reports both changes of a host.
            if known.contains(host.name) {
                await consider(names, now: now)
                (names, known) = ([], [])
            }
            guard apply(change, to: host) else { continue }
            if known.insert(host.name).inserted { names.append(host.name) }
            now = change.time
        }
        await consider(names, now: now)
    }

    /// Applies a change to what is known of a host. Returns whether it is a change for hooks.
    private func apply(_ change: HostTracker.Change, to host: WatchedHost) -> Bool {
        let condition: HookState.Host.Condition
        switch change.new {
        case .unknown: return false
        case .up: condition = .up(since: change.since)
        case .down(let cause):
            var outage = HookOutage()
            if case .down(let earlier)? = hosts[host.name]?.condition { outage = earlier }
            outage.add(cause, since: change.since, reason: change.reason)
            condition = .down(outage)
        }
        hosts[host.name] = HookState.Host(check: host.checkText, condition: condition)
        return true
    }

    /// Lets hosts wait for the next messages of the hooks that have something to report of them.
    private func consider(_ names: [String], now: HostTracker.Moment) async {
        var due: [String] = []
        for index in hooks.indices {
            for name in names { hooks[index].add(name, hosts[name], now: now) }
            let (key, wait) = (hooks[index].key, hooks[index].hook.groupWait)
            guard hooks[index].hasWaiting else { continue }
            if wait == .zero {
                due.append(key)
            } else if waits[key] == nil {
                waits[key] = Task { [sleep] in
                    guard (try? await sleep(wait)) != nil else { return }
                    await self.endWait(of: key)
                }
            }
        }
        for key in due { await flush(key, now: now) }
    }

    private func endWait(of key: String) async {
        guard waits.removeValue(forKey: key) != nil else { return }
        await flush(key, now: clock())
    }

    // MARK: Reports

    /// Reports the hosts that wait for a message of a hook. Returns when its webhooks are stored.
    private func flush(_ key: String, now: HostTracker.Moment) async {
        guard let index = hooks.firstIndex(where: { $0.key == key }) else { return }
        let alerts = hooks[index].take(hosts, now: now)
        guard !alerts.isEmpty else { return }
        let state = hooks[index]
        await afterLastReport { await self.report(alerts, by: state, now: now) }
    }

    /// Calls a function when the earlier calls have returned, so that messages are stored in the order of the changes.
    private func afterLastReport(_ body: @escaping @Sendable () async -> Void) async {
        // The database refuses to write in a cancelled task, so this is a separate task.
        let report = Task { [lastReport] in
            await lastReport?.value
            await body()
        }
        lastReport = report
        await report.value
    }

    private func report(_ alerts: [HostAlert], by state: HookState, now: HostTracker.Moment) async {
        // The next run reports what this one cannot.
        if case .program = state.hook.action, history != nil, await programs.isStopped { return }
        let messages = HookMessage.messages(for: alerts).filter { state.hook.events.contains($0.event) }
        let outages = alerts.map { (host: $0.host, outage: state.reported[$0.host]) }
        var records: [(record: HostHistory.HookMessageRecord, message: HookMessage)] = []
        if case .webhook = state.hook.action {
            for message in messages {
                guard let body = form(of: message)?.json else { continue }
                let record = HostHistory.HookMessageRecord(id: UUIDv7.make(), hook: state.key, body: body)
                records.append((record, message))
            }
        }
        let report = HostHistory.HookReport(
            hook: state.key,
            outages: outages,
            messages: records.map(\.record)
        )
        await write { try await $0.record(report, now: now) }
        switch state.hook.action {
        case .webhook: for (record, message) in records { await send(record, about: message) }
        case .program(let program):
            for message in messages {
                guard let variables = form(of: message)?.environment else { continue }
                await programs.start(program, for: message, variables)
            }
        }
    }

    private func form(of message: HookMessage) -> HookMessage.Form? {
        do {
            return try message.form
        } catch {
            logger.error(
                "a message about \(message.subject) cannot be created: \(error)",
                metadata: message.fields
            )
            return nil
        }
    }

    // MARK: Webhooks

    /// Tries again to store the messages that the queue has refused. Called once a minute.
    func retry() async {
        guard !unsent.isEmpty else { return }
        await afterLastReport { await self.sendUnsent() }
    }

    private func sendUnsent() async {
        let records = unsent
        unsent = []
        for record in records { await send(record) }
    }

    /// Stores a message in the queue. If the queue refuses it, the message waits for ``retry()``, and so do those of
    /// the same hook after it.
    ///
    /// - Parameter message: The message, for the log. Default: `nil`, it is tried again.
    private func send(_ record: HostHistory.HookMessageRecord, about message: HookMessage? = nil) async {
        guard case .webhook(let webhook)? = hooks.first(where: { $0.key == record.hook })?.hook.action else {
            return
        }
        guard !unsent.contains(where: { $0.hook == record.hook }) else { return await keep(record) }
        var options = EnqueueOptions(lane: Self.lane, isFIFO: true, id: record.id)
        options.idempotencyKey = .value(record.id)
        options.credential = webhook.credential
        do {
            try await enqueue(webhook.request(reporting: record.body), options)
        } catch let error as QueueError where error.code == .idConflict {
            // A user has taken the id, or the previous run has stored the message with another credential.
            logger.warning("a webhook gets another id, because its id is in use: \(error)")
            let other = HostHistory.HookMessageRecord(id: UUIDv7.make(), hook: record.hook, body: record.body)
            await write { try await $0.changeIDOfHookMessage(record.id, to: other.id) }
            await send(other, about: message)
            // The record has this id only if the change failed.
        } catch {
            if let message {
                let (subject, event) = (message.subject, message.event.rawValue)
                logger.warning(
                    "the webhook for \(subject) (\(event)) was not queued: \(error)",
                    metadata: message.fields
                )
            }
            return await keep(record)
        }
        await write { try await $0.removeHookMessage(record.id) }
    }

    /// Keeps a message that the queue has not stored. Drops the oldest one if there are too many.
    private func keep(_ record: HostHistory.HookMessageRecord) async {
        unsent.append(record)
        guard unsent.count > Self.mostUnsent else { return }
        let oldest = unsent.removeFirst()
        logger.warning("a webhook was dropped: \(Self.mostUnsent) others wait for the queue")
        await write { try await $0.removeHookMessage(oldest.id) }
    }

    private func write(_ change: (HostHistory) async throws -> Void) async {
        guard let history else { return }
        do {
            try await change(history)
        } catch {
            logger.warning("the reports of a hook were not recorded: \(error)")
        }
    }

    // MARK: Stopping

    /// Ends the programs that run, and starts no others. Returns when they have ended.
    func stopPrograms() async { await programs.stop() }

    /// Ends the waits. The next run of the service reports the changes that wait. Without a history it could not, so
    /// they are reported now. Returns when all webhooks are stored.
    func stop() async {
        for wait in waits.values { wait.cancel() }
        waits = [:]
        if history == nil { for key in hooks.map(\.key) { await flush(key, now: clock()) } }
        await lastReport?.value
    }
}
