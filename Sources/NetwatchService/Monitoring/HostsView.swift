internal import Foundation
package import OfflineQueue

/// Reads the state and the history of the hosts for the routes.
struct HostsView: Sendable {
    let monitor: HostMonitor
    /// `nil` if the history could not be opened.
    let history: HostHistory?

    /// The maximum number of outages in a history.
    private static let mostOutages = 100

    /// Returns all watched hosts, in the order of the configuration.
    func all() async throws -> [ControlMessage.Host] {
        let now = HostTracker.Moment.now.wall / 1000
        let day = try await sums(.day, now), week = try await sums(.week, now),
            month = try await sums(.month, now)
        return await monitor.snapshots.map { snapshot in
            let name = snapshot.host.name
            let uptime = ControlMessage.Uptime(
                day: day[name]?.uptime,
                week: week[name]?.uptime,
                month: month[name]?.uptime
            )
            return ControlMessage.Host(snapshot, uptime: uptime)
        }
    }

    private func sums(_ window: HistoryWindow, _ now: Int64) async throws -> [String: HistoryBucket] {
        // Buckets of an hour are precise enough for a day, and are read quickly even for many hosts.
        let range = now - window.seconds...now
        var sums = try await history?.sums(.hour, in: range) ?? [:]
        for (host, buckets) in await monitor.unwritten(.hour) {
            for (start, bucket) in buckets where range.contains(start) {
                sums[host, default: HistoryBucket()].add(bucket)
            }
        }
        return sums
    }

    /// Returns the history of a host; without any known time if nothing was recorded.
    func history(of host: String, _ window: HistoryWindow) async throws -> ControlMessage.History {
        ControlMessage.History(
            of: host,
            window,
            try await timeline(of: host, window),
            try await outages(of: host, within: window.seconds, limit: Self.mostOutages)
        )
    }

    /// Returns the newest outages of a host, or of all hosts, that lasted within a time up to now, in seconds.
    func outages(of host: String?, within time: Int64, limit: Int) async throws -> [HostHistory.Outage] {
        let now = HostTracker.Moment.now
        return try await history?.outages(of: host, since: now.wall - time * 1000, now: now, limit: limit)
            ?? []
    }

    func timeline(of host: String, _ window: HistoryWindow) async throws -> HistoryTimeline {
        let now = HostTracker.Moment.now.wall / 1000
        let oldest = now - window.seconds - window.step
        var buckets = try await history?.buckets(of: host, window.tier, since: oldest) ?? [:]
        for (start, bucket) in await monitor.unwritten(window.tier)[host] ?? [:] {
            buckets[start, default: HistoryBucket()].add(bucket)
        }
        return HistoryTimeline(window, buckets, now: now)
    }
}

extension ControlMessage.Host {
    init(_ snapshot: HostSnapshot, uptime: ControlMessage.Uptime) {
        let host = snapshot.host
        self.init(
            name: host.name,
            check: host.checkText,
            state: snapshot.stateName,
            cause: snapshot.state.cause?.rawValue,
            since: snapshot.since.map(Date.init(milliseconds:)),
            reason: snapshot.reason,
            latencySeconds: snapshot.latency.map { $0 / .seconds(1) },
            probedAt: snapshot.probedAt.map(Date.init(milliseconds:)),
            uptime: uptime,
            intervalSeconds: host.interval / .seconds(1),
            timeoutSeconds: host.timeout / .seconds(1),
            fall: host.fall,
            rise: host.rise
        )
    }
}

extension ControlMessage.History {
    init(
        of name: String,
        _ window: HistoryWindow,
        _ timeline: HistoryTimeline,
        _ outages: [HostHistory.Outage]
    ) {
        let total = timeline.total
        self.init(
            name: name,
            window: window.rawValue,
            uptime: total.uptime,
            p50Seconds: total.latencies.quantile(0.5).map { $0 / .seconds(1) },
            p95Seconds: total.latencies.quantile(0.95).map { $0 / .seconds(1) },
            steps: timeline.steps.enumerated().map { index, bucket in
                Step(bucket, start: timeline.start + Int64(index) * timeline.step)
            },
            outages: outages.map(Outage.init)
        )
    }
}

extension ControlMessage.History.Step {
    fileprivate init(_ bucket: HistoryBucket, start: Int64) {
        self.init(
            start: Date(milliseconds: start * 1000),
            upSeconds: Double(bucket.up) / 1000,
            remoteSeconds: Double(bucket.remote) / 1000,
            localSeconds: Double(bucket.local) / 1000,
            probes: bucket.probes,
            failures: bucket.failures,
            p50Seconds: bucket.latencies.quantile(0.5).map { $0 / .seconds(1) },
            p95Seconds: bucket.latencies.quantile(0.95).map { $0 / .seconds(1) }
        )
    }
}

extension ControlMessage.History.Outage {
    fileprivate init(_ outage: HostHistory.Outage) {
        self.init(
            cause: outage.cause.rawValue,
            start: Date(milliseconds: outage.start),
            end: outage.end.map(Date.init(milliseconds:)),
            reason: outage.reason
        )
    }
}

/// What the monitor knows about a host now.
package struct HostSnapshot: Hashable, Sendable {
    package let host: WatchedHost
    package var state = HostState.unknown
    /// Whether the host is up, but its last probe failed.
    package var isDegraded = false
    /// When the state began, in milliseconds since 1970; `nil` before the first observation.
    package var since: Int64?
    /// Why the host is down or unknown, or why its last probe failed.
    package var reason: String?
    /// The latency of the last successful probe.
    package var latency: Duration?
    /// When the last probe ended, in milliseconds since 1970.
    package var probedAt: Int64?
    /// When the last successful probe ended, in milliseconds since 1970.
    package var succeededAt: Int64?
    /// The numbers of probes and of state changes since the service began to watch the host.
    package var successes = 0
    package var failures = 0
    package var changes = 0
    /// The latencies of the successful probes since the service began to watch the host.
    package var latencies = DurationHistogram(limits: HostSnapshot.latencyLimits)

    /// From a host in the same network to the default timeout of a probe. Each limit is a time series of each host.
    private static let latencyLimits: [Duration] = [
        .milliseconds(1), .milliseconds(5), .milliseconds(25), .milliseconds(100), .milliseconds(500),
        .seconds(1), .seconds(5),
    ]

    package init(_ host: WatchedHost) {
        self.host = host
    }
}

extension HostSnapshot {
    /// The name of the state in outputs: `up`, `degraded`, `down` or `unknown`.
    package var stateName: String {
        switch state {
        case .unknown: "unknown"
        case .up: isDegraded ? "degraded" : "up"
        case .down: "down"
        }
    }
}
