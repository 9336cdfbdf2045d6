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
