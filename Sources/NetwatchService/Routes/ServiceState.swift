internal import Foundation
internal import Glibc
internal import NetworkReachability
internal import OfflineQueue

/// Reads the state of the whole service for the routes.
struct ServiceState: Sendable {
    let queue: OfflineQueue
    let monitor: PathMonitor
    let hosts: HostsView
    /// The version of netwatch.
    let version: String
    let configuration: ConfigurationInUse
    let started = Date()
    let meter = QueueMeter()
    let pushes = PushMeter()
    let readiness = Readiness()
    let reloads = ConfigurationReloads()

    func status() async throws -> ControlMessage.Status {
        let statistics = try await queue.statistics()
        return ControlMessage.Status(
            version: version,
            pid: getpid(),
            started: started,
            network: await network(),
            auditCorrections: await monitor.currentStatistics().auditCorrections,
            hosts: await hostCounts(),
            queue: ControlMessage.Queue(
                counts: statistics.counts.byName,
                requests: statistics.requests,
                bytes: statistics.bytes,
                oldest: statistics.oldest,
                paused: statistics.isPaused,
                diskFull: statistics.isDiskFull
            ),
            reload: await reloads.latest.map { (date, outcome) in
                ControlMessage.LastReload(time: date, refused: outcome.isRefused)
            },
            lastGood: configuration.fallback?.kept,
            scan: ControlMessage.Scan(queue.scan, withTexts: false),
            push: ControlMessage.Push(pushes.values, at: .now)
        )
    }

    /// Returns the metrics of this moment.
    func metrics() async throws -> [Metric] {
        ServiceMetrics(
            version: version,
            isConfigurationCurrent: await isConfigurationCurrent,
            network: await network(),
            netlink: await monitor.currentStatistics(),
            hosts: await hosts.monitor.snapshots,
            queue: try await queue.statistics(),
            scan: queue.scan,
            activity: meter.values,
            commits: queue.commitDurations,
            pushes: pushes.values,
            process: ProcessUsage(started: started)
        ).metrics
    }

    func statusLine() async -> StatusLine {
        StatusLine(
            network: await network(),
            hosts: await hostCounts(),
            queue: try? await queue.counts,
            usesLastGood: configuration.fallback != nil,
            isStoreDamaged: queue.scan.isDamaged,
            isDiskFull: await queue.isDiskFull
        )
    }

    /// Whether the last start or reload has applied the configuration files.
    var isConfigurationCurrent: Bool {
        get async {
            let isRefused = await reloads.latest?.outcome.isRefused ?? false
            return configuration.fallback == nil && !isRefused
        }
    }

    /// The number of watched hosts in each state.
    private func hostCounts() async -> [String: Int] {
        await hosts.monitor.snapshots.reduce(into: [:]) { $0[$1.stateName, default: 0] += 1 }
    }

    func network() async -> ControlMessage.Network {
        let status = await monitor.statuses(of: .general).first { _ in true }
        let path = status?.path
        let state =
            switch status?.verdict {
            case .reachable: "reachable"
            case .notReachable: "not_reachable"
            case .unknown, nil: "unknown"
            }
        return ControlMessage.Network(
            state: state,
            interface: path?.interfaceName,
            source: path?.source?.description,
            gateway: path?.gateway?.description,
            reason: status?.reason?.description
        )
    }
}
