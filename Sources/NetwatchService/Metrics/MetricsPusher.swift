internal import Foundation
internal import Logging
internal import NetwatchEventLoop
internal import OfflineQueue

/// Sends the metrics of the service to a collector at a fixed interval, through the queue.
///
/// Each push replaces the one that still waits, so the queue stores at most one push, and another one is in flight. If
/// the metrics need several requests, this applies to each of them. Pushes leave no record in the queue: a collector that
/// refuses all of them displaces no requests of users from the history.
actor MetricsPusher {
    /// Returns after a duration, or throws if its task is cancelled before.
    typealias Sleep = @Sendable (Duration) async throws -> Void

    /// The statuses after which OTLP permits to send the same request again. After all other errors it must not be sent
    /// again (https://opentelemetry.io/docs/specs/otlp/#failures-1).
    private static let statusRules = StatusRules(
        retry: [429...429, 502...504],
        dead: [400...428, 430...501, 505...599]
    )

    /// The maximum time for an attempt: 30 s, or the interval if that is shorter.
    private static let longestAttempt: Duration = .seconds(30)

    private let queue: OfflineQueue
    private let version: String
    private let meter: PushMeter
    private let logger: Logger
    private let clock: @Sendable () -> HostTracker.Moment
    private let sleep: Sleep
    private let collect: @Sendable () async throws -> [Metric]
    /// When the counters were 0. It follows the wall clock: after a correction to the past, a counter would otherwise
    /// begin after the time of its value, which OTLP forbids.
    private let start: HostTracker.Start
    private var configuration = MetricsPush()
    private var loop: Task<Void, Never>?
    /// Whether the log says that the metrics are not accepted.
    private var isRefused = false

    /// - Parameters:
    ///   - meter: Where the pusher counts.
    ///   - clock: Returns the current time. Default: the system's clocks.
    ///   - sleep: Waits for the next push. Default: `Task.sleep`.
    ///   - collect: Returns the current metrics.
    init(
        queue: OfflineQueue,
        version: String,
        meter: PushMeter,
        logger: Logger,
        clock: @escaping @Sendable () -> HostTracker.Moment = { .now },
        sleep: @escaping Sleep = { try await Task.sleep(for: $0) },
        collect: @escaping @Sendable () async throws -> [Metric]
    ) {
        (self.queue, self.version, self.meter, self.logger) = (queue, version, meter, logger)
        (self.clock, self.sleep, self.collect) = (clock, sleep, collect)
        start = HostTracker.Start(clock())
    }

    // MARK: Configuration

    /// Pushes with a configuration from now on. If it replaces one with another URL, the pushes that wait are dropped.
    /// Those of an earlier run are given up after their time to live, because finding them would read the whole queue.
    func use(_ new: MetricsPush) async {
        let old = configuration
        configuration = new
        if new.url != old.url {
            isRefused = false
            meter.begin(every: new.url.map { _ in new.interval }, at: clock())
        } else {
            meter.change(interval: new.url.map { _ in new.interval })
        }
        if (new.url, new.interval) != (old.url, old.interval) { restart() }
        if let url = old.url, url != new.url { await dropOthers() }
    }

    /// The first push waits for a random part of the interval, so that machines that start together do not push
    /// together.
    private func restart() {
        loop?.cancel()
        loop = nil
        guard configuration.url != nil else { return }
        let interval = configuration.interval
        loop = Task { [sleep] in
            var wait = interval * Double.random(in: 0...1)
            while (try? await sleep(wait)) != nil {
                await self.push()
                wait = interval
            }
        }
    }

    /// Drops the waiting pushes to other URLs than that of the configuration.
    private func dropOthers() async {
        do {
            var query = RequestQuery(states: [.pending, .blocked, .held, .inflight], limit: 1000)
            // An import may have added requests of users with the same label.
            (query.lane, query.submitter) = (MetricsPush.lane, .process)
            let url = configuration.url
            let others = try await queue.list(query).requests.filter { $0.url != url }
            _ = try await queue.cancel(others.map(\.id))
        } catch {
            logger.warning("metrics for an earlier collector were not removed from the queue: \(error)")
        }
    }

    /// Ends the pushes. What is stored stays in the queue.
    func stop() async {
        loop?.cancel()
        await loop?.value
    }

    // MARK: Pushes

    private func push() async {
        let used = configuration
        guard let url = used.url else { return }
        do {
            for (number, body) in try await requests(from: used).enumerated() {
                let header = QueueRequest.Header(name: "Content-Type", value: OTLPMetrics.contentType)
                let request = QueueRequest(method: "POST", url: url, headers: [header], body: Data(body))
                _ = try await queue.enqueue(request, options: options(of: used, number))
            }
        } catch {
            // The loop was ended: by a reload, or because the service stops.
            guard !Task.isCancelled else { return }
            meter.failed()
            refuse("the metrics were not queued: \(error)")
        }
        // A reload may have changed the URL meanwhile.
        if configuration.url != url { await dropOthers() }
    }

    /// Returns the bodies of the requests with the metrics of this moment.
    func requests(from used: MetricsPush) async throws -> [[UInt8]] {
        let metrics = try await collect()
        let now = clock()
        let encoder = OTLPMetrics(
            instance: used.instanceName,
            version: version,
            start: start.wall(at: now),
            time: now.wall
        )
        return encoder.requests(with: metrics)
    }

    private func options(of used: MetricsPush, _ number: Int) -> EnqueueOptions {
        var options = EnqueueOptions(lane: MetricsPush.lane)
        options.replaceKey = "request-\(number)"
        options.timeToLive = used.timeToLive
        options.credential = used.credential
        // A collector that does not answer delays the next push, and keeps a slot of the queue busy.
        let limit = min(used.interval, Self.longestAttempt)
        (options.timeouts.response, options.timeouts.total) = (limit, limit)
        options.statusRules = Self.statusRules
        // After a power failure, the next push has newer values.
        options.durability = .normal
        options.isRecorded = false
        return options
    }

    // MARK: Outcomes

    /// Counts and logs the outcomes of pushes until the events end.
    func run(_ events: QueueEvents) async {
        for await event in events { record(event) }
    }

    func record(_ event: QueueEvent) {
        guard event.isOfMetricsPush, event.oldState == .inflight else { return }
        switch event.newState {
        case .delivered:
            meter.succeeded(at: clock())
            accept(event)
        case .dead, .held:
            meter.failed()
            let reason = event.reason ?? event.holdReason?.rawValue ?? "an unknown reason"
            refuse(
                "`\(event.host ?? "")` does not accept the metrics: \(reason.printable(upTo: 500))",
                fields(of: event)
            )
        // A newer push replaces one whose attempt has failed.
        case .pending, .blocked, .superseded: meter.failed()
        case .cancelled, .inflight, nil: break
        }
    }

    private func accept(_ event: QueueEvent) {
        guard isRefused else { return }
        isRefused = false
        logger.notice("`\(event.host ?? "")` accepts the metrics again", metadata: fields(of: event))
    }

    /// Logs why the metrics are not accepted. Until they are accepted again, no other reason is logged.
    private func refuse(_ message: String, _ fields: Logger.Metadata = [:]) {
        guard !isRefused else { return }
        isRefused = true
        logger.warning(
            "\(message); further refusals are not logged until a push is accepted",
            metadata: fields
        )
    }

    private func fields(of event: QueueEvent) -> Logger.Metadata {
        .fields([
            .host: event.host, .lane: event.lane,
            .cause: event.holdReason?.rawValue ?? event.status.map { "HTTP \($0)" },
        ])
    }
}

extension QueueEvent {
    /// Whether the event concerns a push, or the lane of the pushes. An imported request of a user may have the same label.
    var isOfMetricsPush: Bool { lane == MetricsPush.lane && submitter == nil }
}

/// What the service knows of the pushes of its metrics.
final class PushMeter: Sendable {
    struct Values {
        /// The time between two pushes; `nil` if the service pushes none.
        var interval: Duration?
        /// When the collector accepted a push last; `nil` if it has accepted none.
        var lastSuccess: HostTracker.Start?
        /// When the service began to push to this collector.
        var began: HostTracker.Start?
        /// The number of attempts that failed, and of pushes that the queue refused.
        var failures = 0

        /// The time since the last success, or since the beginning.
        func silence(at now: HostTracker.Moment) -> Duration {
            guard let boot = (lastSuccess ?? began)?.boot else { return .zero }
            return now.boot - boot
        }
    }

    private let state = Lock(Values())

    /// The values since the service started.
    var values: Values { state.withLock { $0 } }

    /// Begins with another collector; with `nil`, ends.
    ///
    /// - Parameter interval: The time between two pushes.
    func begin(every interval: Duration?, at now: HostTracker.Moment) {
        state.withLock { state in
            (state.interval, state.lastSuccess) = (interval, nil)
            state.began = HostTracker.Start(now)
        }
    }

    /// Continues with the same collector, and another interval.
    func change(interval: Duration?) {
        state.withLock { $0.interval = interval }
    }

    func succeeded(at now: HostTracker.Moment) {
        state.withLock { $0.lastSuccess = HostTracker.Start(now) }
    }

    func failed() {
        state.withLock { $0.failures += 1 }
    }
}

extension ControlMessage.Push {
    /// Returns `nil` if the service pushes no metrics.
    init?(_ values: PushMeter.Values, at now: HostTracker.Moment) {
        guard let interval = values.interval else { return nil }
        self.init(
            intervalSeconds: interval / .seconds(1),
            silentSeconds: values.silence(at: now) / .seconds(1),
            lastSuccess: values.lastSuccess.map { Date(milliseconds: $0.wall(at: now)) },
            failures: values.failures
        )
    }
}
