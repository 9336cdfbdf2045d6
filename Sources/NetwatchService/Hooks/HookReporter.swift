package import Logging
package import OfflineQueue

/// Reports the outages of hosts to the configured hooks.
///
/// A hook reports an outage once when it begins and once when it ends, whatever happens between; see ``HookOutage``.
package actor HookReporter {
    /// Stores a request in the queue of the service.
    package typealias Enqueue = @Sendable (QueueRequest, EnqueueOptions) async throws -> Void
    /// Returns whether the request with an id is a webhook that a reporter has stored.
    package typealias IsStored = @Sendable (_ id: String) async throws -> Bool

    /// The label of the lane of all webhooks. It is FIFO, so that `up` does not overtake `down`.
    static let lane = "netwatch-hooks"
    /// The maximum age of an outage whose beginning a new run of the service reports again. The queue must still know
    /// the webhook, and it forgets delivered requests after a day.
    private static let longestRepeat: Int64 = 12 * 3_600_000

    private let enqueue: Enqueue
    private let isStored: IsStored
    private let programs: HookPrograms
    private let logger: Logger
    private var hooks: [Hook] = []
    private var outages: [String: HookOutage] = [:]
    /// The names of the hosts that are watched; `nil` before the first call of ``watch(_:)``.
    private var watched: Set<String>?

    package init(logger: Logger, isStored: @escaping IsStored, enqueue: @escaping Enqueue) {
        self.enqueue = enqueue
        self.isStored = isStored
        self.logger = logger
        programs = HookPrograms(logger: logger)
    }

    /// Creates a reporter that stores webhooks in a queue.
    package init(logger: Logger, queue: OfflineQueue) {
        // No user can submit a request to a lane with this label, and only the service enqueues without a submitter.
        self.init(
            logger: logger,
            isStored: { id in
                let found = try await queue.request(id)?.summary
                return found?.submitter == nil && found?.lane == Self.lane
            },
            enqueue: { request, options in _ = try await queue.enqueue(request, options: options) }
        )
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
            do {
                try await enqueue(alert, to: webhook, id: id)
            } catch let error as QueueError where error.code == .idConflict {
                // The previous run has enqueued it, with a reason or a time that this run does not know.
                if try await isStored(id) { return }
                try await enqueueAgain(alert, to: webhook, insteadOf: id)
            }
        } catch {
            logger.warning(
                "the webhook for host `\(alert.host)` (\(alert.event.rawValue)) was not queued: \(error)",
                metadata: alert.fields
            )
        }
    }

    private func enqueue(_ alert: HostAlert, to webhook: Webhook, id: String) async throws {
        var options = EnqueueOptions(lane: Self.lane, isFIFO: true, id: id)
        options.idempotencyKey = .value(id)
        options.credential = webhook.credential
        try await enqueue(webhook.request(reporting: try alert.json), options)
    }

    /// Stores a webhook whose id belongs to a request of a user, who has calculated the id before. The new id is
    /// random. If the service is restarted during the outage, the webhook is therefore sent again.
    private func enqueueAgain(_ alert: HostAlert, to webhook: Webhook, insteadOf id: String) async throws {
        let (other, event) = (UUIDv7.make(), alert.event.rawValue)
        logger.warning(
            "the webhook for host `\(alert.host)` (\(event)) has the id `\(other)`: `\(id)` was in use"
        )
        try await enqueue(alert, to: webhook, id: other)
    }
}
