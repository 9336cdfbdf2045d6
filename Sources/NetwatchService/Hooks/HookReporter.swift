package import Logging
package import OfflineQueue

/// Reports the outages of hosts to the configured hooks.
///
/// A hook reports an outage once when it begins and once when it ends, whatever happens between; see ``HookOutage``.
package actor HookReporter {
    /// Stores a request in the queue of the service.
    package typealias Enqueue = @Sendable (QueueRequest, EnqueueOptions) async throws -> Void

    /// The label of the lane of all webhooks. It is FIFO, so that `up` does not overtake `down`.
    static let lane = "netwatch-hooks"
    /// The maximum age of an outage whose beginning a new run of the service reports again. The queue must still know
    /// the webhook, and it forgets delivered requests after a day.
    private static let longestRepeat: Int64 = 12 * 3_600_000

    private let enqueue: Enqueue
    private let programs: HookPrograms
    private let logger: Logger
    private var hooks: [Hook] = []
    private var outages: [String: HookOutage] = [:]
    /// The names of the hosts that are watched; `nil` before the first call of ``watch(_:)``.
    private var watched: Set<String>?

    package init(logger: Logger, enqueue: @escaping Enqueue) {
        self.enqueue = enqueue
        self.logger = logger
        programs = HookPrograms(logger: logger)
    }

    /// Uses these hooks from now on. Programs that already wait or run are not affected.
    package func use(_ hooks: [Hook]) {
        self.hooks = hooks
        for hook in hooks {
            guard case .program(let program) = hook.action, let fault = program.fault else { continue }
            logger.warning("\(fault)")
        }
    }

    /// Forgets the outages of all other hosts, and ignores changes of them that still arrive.
    func watch(_ hosts: Set<String>) {
        watched = hosts
        outages = outages.filter { hosts.contains($0.key) }
    }

    /// Continues an outage that the previous run of the service has recorded.
    ///
    /// The previous run may have ended before it has reported the outage. Its webhooks are therefore enqueued again. If
    /// the queue knows them, this has no effect. Programs have no such protection, so they are not run again.
    ///
    /// - Parameter now: The current time.
    func resume(_ outage: HookOutage, of host: WatchedHost, now: HostTracker.Moment) async {
        outages[host.name] = outage
        let began = alerts(.down, of: host, outage, now: now) { _ in true }
        for case (let alert, .webhook(let webhook)) in began
        where now.wall - alert.downSince <= Self.longestRepeat {
            await send(alert, to: webhook)
        }
    }

    /// Reports a change. Returns when all webhooks are stored, and does not wait for programs.
    func report(_ change: HostTracker.Change, of host: WatchedHost) async {
        guard watched?.contains(host.name) ?? true else { return }
        for (alert, action) in alerts(for: change, of: host) {
            switch action {
            case .webhook(let webhook): await send(alert, to: webhook)
            case .program(let program): await programs.start(program, for: alert)
            }
        }
    }

    /// Ends the programs that run, and starts no others. Returns when they have ended.
    func stop() async { await programs.stop() }

    // MARK: Outages

    private func alerts(
        for change: HostTracker.Change,
        of host: WatchedHost
    ) -> [(HostAlert, Hook.Action)] {
        switch change.new {
        case .unknown: return []
        case .down(let cause):
            return begin(HostTracker.Outage(cause: cause, since: change.since), of: host, change)
        case .up: return end(of: host, change)
        }
    }

    /// Records that a host is down, and returns what the hooks report that did not report the outage yet.
    private func begin(
        _ outage: HostTracker.Outage,
        of host: WatchedHost,
        _ change: HostTracker.Change
    ) -> [(HostAlert, Hook.Action)] {
        let before = outages[host.name] ?? HookOutage()
        var after = before
        after.add(outage.cause, since: outage.since)
        outages[host.name] = after
        return alerts(.down, of: host, after, reason: change.reason, now: change.time) {
            before.start($0.causes, now: change.time) == nil
        }
    }

    private func end(of host: WatchedHost, _ change: HostTracker.Change) -> [(HostAlert, Hook.Action)] {
        guard let outage = outages.removeValue(forKey: host.name) else { return [] }
        let upSince = change.since.wall(at: change.time)
        return alerts(.up, of: host, outage, upSince: upSince, now: change.time) { _ in true }
    }

    private func alerts(
        _ event: Hook.Event,
        of host: WatchedHost,
        _ outage: HookOutage,
        reason: String? = nil,
        upSince: Int64? = nil,
        now: HostTracker.Moment,
        where isDue: (Hook) -> Bool
    ) -> [(HostAlert, Hook.Action)] {
        hooks.compactMap { hook in
            guard hook.events.contains(event), hook.concerns(host.name), isDue(hook),
                let start = outage.start(hook.causes, now: now)
            else { return nil }
            let downSince = start.since.wall(at: now)
            let alert = HostAlert(
                event: event,
                host: host.name,
                check: host.checkText,
                cause: start.cause,
                reason: reason,
                outage: start.since.id,
                downSince: min(downSince, upSince ?? downSince),
                upSince: upSince
            )
            return (alert, hook.action)
        }
    }

    // MARK: Webhooks

    private func send(_ alert: HostAlert, to webhook: Webhook) async {
        do {
            let id = try alert.id(to: webhook.url)
            var options = EnqueueOptions(lane: Self.lane, isFIFO: true, id: id)
            options.idempotencyKey = .value(id)
            options.credential = webhook.credential
            try await enqueue(webhook.request(reporting: try alert.json), options)
        } catch let error as QueueError where error.code == .idConflict {
            // The previous run has enqueued it, with a reason or a time that this run does not know.
        } catch {
            logger.warning(
                "the webhook for host `\(alert.host)` (\(alert.event.rawValue)) was not queued: \(error)"
            )
        }
    }
}
