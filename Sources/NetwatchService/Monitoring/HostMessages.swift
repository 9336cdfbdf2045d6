internal import Foundation

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
